package main

import (
	"flag"
	"fmt"
	"time"

	"karpenter/lab/agreement"
)

func main() {
	n := flag.Int("n", 1000, "")
	seed := flag.Uint64("seed", 1, "")
	show := flag.Bool("show", false, "")
	story := flag.Bool("story", false, "")
	flag.Parse()
	j, err := agreement.NewJudge()
	if err != nil {
		panic(err)
	}
	defer j.Close()
	count := map[string]int{}
	planned, left, machines, withLeft := 0, 0, 0, 0
	start := time.Now()
	for i := range *n {
		s := *seed + uint64(i)
		c := agreement.Generate(s)
		r, err := agreement.Check(j, c, agreement.Solve, s, *story)
		if err != nil {
			panic(fmt.Sprint(s, err))
		}
		planned += r.Planned
		left += r.Left
		machines += r.Machines
		for k, v := range r.Rebuy {
			if v {
				count[fmt.Sprint("rebuy", k)]++
			}
		}
		for k, v := range r.Empty {
			if v {
				count[fmt.Sprint("empty", k)]++
			}
		}
		if r.Left > 0 {
			withLeft++
		}
		if d := r.Disagreement; d != nil {
			k := d.Property + "/" + d.Rule
			count[k]++
			if count[k] <= 3 {
				fmt.Println(s, d)
			}
			if *show {
				c = agreement.Shrink(c, func(c *agreement.Cluster) bool {
					r, err := agreement.Check(j, c, agreement.Solve, s, *story)
					return err == nil && r.Disagreement != nil && r.Disagreement.Rule == d.Rule
				})
				y, _ := c.YAML()
				fmt.Println(string(y))
				r, _ := agreement.Check(j, c, agreement.Solve, s, *story)
				fmt.Println(r.Disagreement)
			}
		}
	}
	fmt.Println(count, "planned", planned, "left", left, "machines", machines, "clusters with left", withLeft, time.Since(start))
}
