package lab

import (
	"context"
	"net"
	"net/http"
	"slices"
	"time"

	"karpenter/internal/aws/catalog"
	"karpenter/lab/boot"
	"karpenter/lab/front"
	"karpenter/sim/ec2"
)

// startCloud serves the simulated EC2 on a free port for the life of the lab,
// together with moto if that is wanted.
func (l *Lab) startCloud(ctx, life context.Context) error {
	sim, err := l.startSimulation(life)
	if err != nil {
		return err
	}
	address := sim
	if l.opt.Moto {
		moto, err := l.startMoto(ctx, life)
		if err != nil {
			return err
		}
		handler, err := front.New(sim, moto)
		if err != nil {
			return err
		}
		if address, err = l.serve(life, handler); err != nil {
			return err
		}
	}
	return l.store.update(func(s *State) { s.CloudURL, s.Region = address, l.Cloud.Region() })
}

// serve serves on a free port for the life of the lab and returns the URL.
func (l *Lab) serve(life context.Context, handler http.Handler) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	l.work.Go(func() error {
		stop := context.AfterFunc(life, func() { server.Close() })
		defer stop()
		if err := server.Serve(listener); life.Err() == nil {
			return err
		}
		return nil
	})
	return "http://" + listener.Addr().String(), nil
}

func (l *Lab) startSimulation(life context.Context) (string, error) {
	l.Cloud = ec2.New(l.opt.Cloud)
	// As EKS would, it tells those who make nodes about the cluster.
	l.Cloud.Edit(func(w *ec2.World) { w.Clusters = append(w.Clusters, ec2.Cluster{Name: ClusterName}) })
	url, failed := make(chan string, 1), make(chan error, 1)
	l.work.Go(func() error {
		err := l.Cloud.Serve(life, "127.0.0.1:0", func(u string) { url <- u })
		failed <- err
		return err
	})
	select {
	case u := <-url:
		return u, nil
	case err := <-failed:
		return "", err
	}
}

// startMachines lets instances join the cluster and leave it.
func (l *Lab) startMachines(life context.Context) {
	delays := l.opt.Delays
	if delays == (boot.Delays{}) {
		delays = boot.DefaultDelays
	}
	l.Agent = boot.New(life, l.Client, l.Cluster.Version, delays, l.log)
	l.Cloud.Subscribe(func(e ec2.Event) {
		i := e.Instance
		l.log.Info("instance "+string(i.State), "instance", i.ID, "type", i.Type, "zone", i.Zone, "market", i.Market)
		switch i.State {
		case ec2.Running:
			if !i.NeverJoins {
				l.Agent.Running(l.machine(i))
			}
		case ec2.ShuttingDown, ec2.Stopping:
			l.Agent.Gone(i.ID)
		}
	})
}

// machine is the instance as its operating system will see it.
func (l *Lab) machine(i ec2.Instance) boot.Machine {
	m := boot.Machine{
		ID: i.ID, Type: i.Type, Zone: i.Zone, Region: l.Cloud.Region(),
		PrivateDNS: i.PrivateDNS, PrivateIP: i.PrivateIP, UserData: i.UserData,
		Arch: "amd64", VCPU: i.Row.VCPU, MemoryMiB: i.Row.MemoryMiB,
		MaxENIs: i.Row.MaxENIs, IPv4PerENI: i.Row.IPv4PerENI,
		Disks: l.disks(i.ID), LocalGB: i.Row.LocalNVMeGB, Devices: devices(i.Row),
	}
	if slices.Contains(i.Row.Arch, "arm64") {
		m.Arch = "arm64"
	}
	return m
}

// disks has the size in GiB of each volume of the machine, by device.
func (l *Lab) disks(id string) map[string]int64 {
	out, err := ec2.Call(l.Cloud, &ec2.DescribeVolumesInput{
		Filters: []ec2.Filter{{Name: "attachment.instance-id", Values: []string{id}}},
	})
	if err != nil {
		return nil
	}
	found := map[string]int64{}
	for _, v := range out.Volumes {
		for _, a := range v.Attachments {
			found[a.Device] = v.Size
		}
	}
	return found
}

// devices are the extended resources that the machine's device plugins would
// announce.
func devices(row catalog.Row) map[string]int64 {
	found := map[string]int64{}
	for _, g := range row.GPUs {
		name, ok := map[string]string{"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu", "Habana": "habana.ai/gaudi"}[g.Manufacturer]
		if ok {
			found[name] += g.Count
		}
	}
	for _, n := range row.Neuron {
		found["aws.amazon.com/neuron"] += n.Count
	}
	return found
}
