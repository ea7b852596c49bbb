package ec2

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"
)

// addControl adds the control endpoint: what an operator or a test does to the
// simulation from outside.
//
//	GET    /_sim/instances                 all instances
//	GET    /_sim/instances/{id}            one, with its user data
//	POST   /_sim/instances/{id}/terminate  likewise stop, start, interrupt (spot), rebalance, retire,
//	                                       impair, impair-host, repair
//	PUT    /_sim/queues/{name}             make a queue; events go to all queues
//	GET    /_sim/queues/{name}             the messages in it
//	POST   /_sim/queues/{name}             put the body of the request into it
//	GET    /_sim/calls?action=CreateFleet  log and number of API calls
//	GET    /_sim/faults                    faults, with how often they struck
//	POST   /_sim/faults                    add one: a Fault, with "for": "30s", "delay": "2s"
//	DELETE /_sim/faults?id=…               heal one, or all
//	PUT    /_sim/limits                    throttling: {"CreateFleet": {"perSecond": 5, "burst": 5}}
func (c *Cloud) addControl(mux *http.ServeMux) {
	mux.HandleFunc("GET /_sim/instances", func(w http.ResponseWriter, r *http.Request) {
		c.Tick()
		writeJSON(w, http.StatusOK, c.Instances())
	})
	mux.HandleFunc("GET /_sim/instances/{id}", func(w http.ResponseWriter, r *http.Request) {
		c.Tick()
		i, ok := c.Instance(r.PathValue("id"))
		if !ok {
			refuse(w, http.StatusNotFound, noInstances(r.PathValue("id")))
			return
		}
		writeJSON(w, http.StatusOK, struct {
			Instance
			ProviderID string `json:"providerId"`
			UserData   string `json:"userData"`
		}{i, i.ProviderID(), i.UserData})
	})
	for verb, do := range map[string]func(string) error{
		"terminate": c.Terminate, "stop": c.Stop, "start": c.Start, "interrupt": c.Interrupt, "rebalance": c.Rebalance,
		"retire":      func(id string) error { return c.Retire(id, c.now().Add(24*time.Hour)) },
		"impair":      func(id string) error { return c.Impair(id, false) },
		"impair-host": func(id string) error { return c.Impair(id, true) },
		"repair":      c.Repair,
	} {
		mux.HandleFunc("POST /_sim/instances/{id}/"+verb, func(w http.ResponseWriter, r *http.Request) {
			if err := do(r.PathValue("id")); err != nil {
				refuse(w, http.StatusConflict, err)
				return
			}
			i, _ := c.Instance(r.PathValue("id"))
			writeJSON(w, http.StatusOK, i)
		})
	}
	c.addQueueControl(mux)
	mux.HandleFunc("GET /_sim/calls", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"counts": c.CallCounts(), "calls": c.Calls(r.URL.Query()["action"]...)})
	})
	mux.HandleFunc("GET /_sim/faults", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, c.Faults()) })
	mux.HandleFunc("POST /_sim/faults", c.postFault)
	mux.HandleFunc("DELETE /_sim/faults", func(w http.ResponseWriter, r *http.Request) {
		c.Heal(r.URL.Query()["id"]...)
		writeJSON(w, http.StatusOK, c.Faults())
	})
	mux.HandleFunc("PUT /_sim/limits", func(w http.ResponseWriter, r *http.Request) {
		var limits map[string]Limit
		if err := readJSON(r, &limits); err != nil {
			refuse(w, http.StatusBadRequest, err)
			return
		}
		c.SetLimits(limits)
		writeJSON(w, http.StatusOK, limits)
	})
}

func (c *Cloud) addQueueControl(mux *http.ServeMux) {
	mux.HandleFunc("PUT /_sim/queues/{name}", func(w http.ResponseWriter, r *http.Request) {
		c.AddQueue(r.PathValue("name"))
		writeJSON(w, http.StatusCreated, []string{})
	})
	mux.HandleFunc("GET /_sim/queues/{name}", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusOK, c.Waiting(r.PathValue("name")))
	})
	mux.HandleFunc("POST /_sim/queues/{name}", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
		if err == nil {
			err = c.Send(r.PathValue("name"), string(body), 0)
		}
		if err != nil {
			refuse(w, http.StatusNotFound, err)
			return
		}
		writeJSON(w, http.StatusOK, c.Waiting(r.PathValue("name")))
	})
}

func (c *Cloud) postFault(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Fault
		For   string `json:"for"`
		Delay string `json:"delay"`
	}
	err := readJSON(r, &in)
	if err == nil && in.For != "" {
		var d time.Duration
		d, err = time.ParseDuration(in.For)
		in.Until = c.now().Add(d)
	}
	if err == nil && in.Delay != "" {
		in.Fault.Delay, err = time.ParseDuration(in.Delay)
	}
	if err == nil {
		in.ID, err = c.Inject(in.Fault)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	writeJSON(w, http.StatusCreated, in.Fault)
}

func readJSON(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(v)
}

func refuse(w http.ResponseWriter, status int, err error) {
	var e *Error
	if errors.As(err, &e) && e.Code == "InvalidInstanceID.NotFound" {
		status = http.StatusNotFound
	}
	writeJSON(w, status, map[string]string{"error": err.Error()})
}
