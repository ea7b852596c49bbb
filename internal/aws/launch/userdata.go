package launch

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/netip"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

// Unregistered keeps pods off a node until its labels and taints were put
// right.
var Unregistered = world.Taint{Key: "karpenter.sh/unregistered", Effect: world.NoExecute}

// Boot is what the user data of a machine tells its kubelet.
type Boot struct {
	Cluster *Cluster
	Kubelet world.Kubelet
	// Labels and taints of the node. Labels that a kubelet refuses to give
	// itself are left out of the user data; the controller adds them.
	Labels        map[string]string
	Taints        []world.Taint
	StartupTaints []world.Taint
	// Custom is the user data of the class.
	Custom string
}

const boundary = "//"

// mostUserData is how many bytes EC2 takes, before they are encoded.
const mostUserData = 16 << 10

// AL2UserData writes the user data of Amazon Linux 2: the parts of the custom
// user data, then a script that calls the bootstrap program of the image. An
// error is about the custom user data, or about the length of the whole.
func AL2UserData(b Boot) (string, error) {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	if err := w.SetBoundary(boundary); err != nil {
		return "", fmt.Errorf("writing user data: %w", err)
	}
	if strings.TrimSpace(b.Custom) != "" {
		if err := copyParts(w, b.Custom); err != nil {
			return "", err
		}
	}
	if err := writePart(w, textproto.MIMEHeader{"Content-Type": {`text/x-shellscript; charset="us-ascii"`}}, strings.NewReader(bootstrapScript(b))); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", fmt.Errorf("writing user data: %w", err)
	}
	head := "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"" + boundary + "\"\n\n"
	text := head + strings.ReplaceAll(body.String(), "\r", "")
	if len(text) > mostUserData {
		return "", fmt.Errorf("with the script that joins the cluster (labels, taints and kubelet settings are in it) it is %d bytes long, and EC2 takes %d: shorten it, or let it fetch what is long", len(text), mostUserData)
	}
	return text, nil
}

// copyParts copies the parts of a MIME document, headers and bodies as they
// are.
func copyParts(w *multipart.Writer, custom string) error {
	const want = "it must be a MIME document with a multipart content type"
	doc, err := mail.ReadMessage(strings.NewReader(strings.TrimLeft(custom, " \t\r\n")))
	if err != nil {
		return fmt.Errorf("%s: %w", want, err)
	}
	media, params, err := mime.ParseMediaType(doc.Header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("%s: %w", want, err)
	}
	if !strings.HasPrefix(media, "multipart/") {
		return fmt.Errorf("%s, not %s", want, media)
	}
	parts := multipart.NewReader(doc.Body, params["boundary"])
	for n := 1; ; n++ {
		part, err := parts.NextRawPart()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading its part %d: %w", n, err)
		}
		if err := writePart(w, part.Header, part); err != nil {
			return fmt.Errorf("reading its part %d: %w", n, err)
		}
	}
}

func writePart(w *multipart.Writer, header textproto.MIMEHeader, body io.Reader) error {
	part, err := w.CreatePart(header)
	if err != nil {
		return fmt.Errorf("writing user data: %w", err)
	}
	_, err = io.Copy(part, body)
	return err
}

// bootstrapScript is the script that joins the node to the cluster.
func bootstrapScript(b Boot) string {
	lines := []string{fmt.Sprintf("/etc/eks/bootstrap.sh %s --apiserver-endpoint %s --b64-cluster-ca %s",
		quote(b.Cluster.Name), quote(b.Cluster.Endpoint), quote(b.Cluster.CABundle))}
	dns, ipv6 := clusterDNS(b)
	if ipv6 {
		lines = append(lines, "--ip-family ipv6")
	}
	if maxPods(b) != nil {
		lines = append(lines, "--use-max-pods false")
	}
	if hasContainerRuntime(b.Cluster.Version) {
		lines = append(lines, "--container-runtime "+cmp.Or(b.Kubelet.ContainerRuntime, "containerd"))
	}
	if args := kubeletArgs(b); len(args) > 0 {
		lines = append(lines, "--kubelet-extra-args "+quote(strings.Join(args, " ")))
	}
	if dns != "" {
		lines = append(lines, "--dns-cluster-ip "+quote(dns))
	}
	return "#!/bin/bash -xe\n" +
		"exec > >(tee /var/log/user-data.log | logger -t user-data -s 2>/dev/console) 2>&1\n" +
		strings.Join(lines, " \\\n") + "\n"
}

// clusterDNS returns the address for --dns-cluster-ip, empty if the bootstrap
// program finds it itself, and whether the node belongs to an IPv6 cluster.
func clusterDNS(b Boot) (ip string, ipv6 bool) {
	if len(b.Kubelet.ClusterDNS) > 0 {
		addr, err := netip.ParseAddr(b.Kubelet.ClusterDNS[0])
		return b.Kubelet.ClusterDNS[0], err == nil && addr.Is6()
	}
	if b.Cluster.DNS.Is6() {
		return b.Cluster.DNS.String(), true
	}
	return "", false
}

// maxPods returns the number of pods that the kubelet is told, or nil if the
// image computes it from the network interfaces.
func maxPods(b Boot) *int32 {
	if b.Kubelet.MaxPods == nil && !b.Cluster.ENILimitedPodDensity {
		return new(int32(110))
	}
	return b.Kubelet.MaxPods
}

// hasContainerRuntime: the bootstrap program knows the flag only below 1.27.
func hasContainerRuntime(version string) bool {
	major, minor, ok := strings.Cut(version, ".")
	n, err := strconv.Atoi(minor)
	return ok && err == nil && major == "1" && n < 27
}

// kubeletArgs lists the arguments of the kubelet that are set.
func kubeletArgs(b Boot) []string {
	k := b.Kubelet
	var args []string
	add := func(name, value string) {
		if value != "" {
			args = append(args, "--"+name+"="+value)
		}
	}
	number := func(n *int32) string {
		if n == nil {
			return ""
		}
		return strconv.Itoa(int(*n))
	}
	add("node-labels", pairs(ownLabels(b.Labels), "="))
	add("register-with-taints", taintList(b.Taints, b.StartupTaints, []world.Taint{Unregistered}))
	add("max-pods", number(maxPods(b)))
	add("pods-per-core", number(k.PodsPerCore))
	add("system-reserved", pairs(k.SystemReserved, "="))
	add("kube-reserved", pairs(k.KubeReserved, "="))
	add("eviction-hard", pairs(k.EvictionHard, "<"))
	add("eviction-soft", pairs(k.EvictionSoft, "<"))
	add("eviction-soft-grace-period", pairs(k.EvictionSoftGracePeriod, "="))
	add("eviction-max-pod-grace-period", number(k.EvictionMaxPodGraceSeconds))
	return args
}

// pairs writes a map as key, separator, value, in the order of the keys.
func pairs(m map[string]string, sep string) string {
	out := make([]string, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+sep+m[k])
	}
	return strings.Join(out, ",")
}

// taintList writes taints as key=value:effect, each list sorted, since their
// order has no meaning and must not change the launch template.
func taintList(lists ...[]world.Taint) string {
	var out []string
	for _, list := range lists {
		for _, t := range slices.SortedFunc(slices.Values(list), compareTaints) {
			out = append(out, t.Key+"="+t.Value+":"+string(t.Effect))
		}
	}
	return strings.Join(out, ",")
}

func compareTaints(a, b world.Taint) int {
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect), cmp.Compare(a.Value, b.Value))
}

// ownLabels keeps the labels that a kubelet may give its own node. It refuses
// to start if others of the Kubernetes domains are asked for.
func ownLabels(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	maps.DeleteFunc(out, func(key, _ string) bool { return !kubeletMaySet(key) })
	return out
}

func kubeletMaySet(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	if !ok || !(within(domain, "kubernetes.io") || within(domain, "k8s.io")) {
		return true
	}
	switch label.Normalize(key) {
	case label.Zone, label.Region, label.InstanceType, label.Arch, label.OS, label.Hostname:
		return true
	}
	return within(domain, "kubelet.kubernetes.io") || within(domain, "node.kubernetes.io")
}

// within reports whether domain is parent or one of its subdomains.
func within(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}

// quote makes one word of s for the shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
