package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"karpenter/internal/core/world"
	"karpenter/internal/forecast"
	"karpenter/internal/kube/convert"
	"karpenter/internal/live"
	"karpenter/internal/scenario"
)

// planLive prints what the controller would do now, and with changed pools.
func planLive(cmd *cobra.Command, from *source, files []string, format string, diff bool) error {
	base := *from
	base.files = nil // they are changes here
	w, err := base.read(cmd)
	if w == nil || err != nil {
		return err
	}
	var changed []world.Pool
	var m *scenario.Manifests
	if len(files) > 0 {
		if m, err = scenario.Read(files, cmd.InOrStdin()); err != nil {
			return err
		}
		if changed, err = poolsOf(m); err != nil {
			return err
		}
	}
	done := progress(cmd.ErrOrStderr(), "planning")
	defer done()
	asIs := forecast.Of(w.Dump)
	then := asIs
	if len(changed) > 0 {
		then = forecast.Of(forecast.With(w.Dump, changed, stock(w, m)))
		for _, name := range unlike(w, changed) {
			fmt.Fprintf(cmd.ErrOrStderr(), "note: there is no %s yet; it counts as new\n", name)
		}
	}
	done()
	out := cmd.OutOrStdout()
	if diff {
		text := forecast.Diff(asIs, then)
		answer := map[string]any{"asIs": asIs, "changed": then, "differs": text != ""}
		err = write(out, format, answer, func(w io.Writer) error {
			_, err := io.WriteString(w, cmp.Or(text, "the change would make no difference now\n"))
			return err
		})
		if err == nil && text != "" {
			err = errDiffers
		}
		return err
	}
	err = write(out, format, then, func(w io.Writer) error { return text(w, then.Text()) })
	if err == nil && then.Changes() {
		err = errDiffers
	}
	return err
}

// poolsOf are the pools among the manifests, which must be all there is.
func poolsOf(m *scenario.Manifests) (out []world.Pool, err error) {
	if len(m.Pods)+len(m.Nodes)+len(m.Claims)+len(m.DaemonSets) > 0 {
		return nil, errors.New("-f: with --live only Provisioners and NodePools can be changed; leave the other objects out, or plan without --live")
	}
	for _, o := range m.Pools {
		p, poolErr := convert.PoolOf(o)
		if poolErr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", m.At(o), poolErr))
		}
		out = append(out, p)
	}
	if err == nil && len(out) == 0 {
		err = errors.New("-f: there is no Provisioner or NodePool among the manifests")
	}
	return out, err
}

// unlike names the pools that the world does not have.
func unlike(w *live.World, pools []world.Pool) (out []string) {
	for _, p := range pools {
		if w.Snapshot.Pool(p.Kind, p.Name) == nil {
			out = append(out, p.Kind+" "+p.Name)
		}
	}
	return out
}

// stock answers what pools can buy whose class or kubelet settings are new: from
// the embedded facts, for classes among the manifests.
func stock(w *live.World, m *scenario.Manifests) func(world.Pool) world.Catalog {
	return func(p world.Pool) world.Catalog {
		region := "us-west-2"
		for _, c := range w.Snapshot.Catalogs {
			if c.Region != "" {
				region = c.Region
			}
		}
		shop, err := scenario.Shop(region, m.Classes)
		if err != nil {
			return world.Catalog{Trouble: err.Error()}
		}
		return shop(p)
	}
}
