// Package logbook keeps the journal in the cluster, so that it outlives machines
// and the process: in at most eight ConfigMaps of 512 KiB, used in turn.
//
// It may import journal and clients. What always holds: one process writes, the
// one that leads; what is read back has no gaps but at its beginning; entries that
// cannot be read are left out, and the others stand.
package logbook

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/internal/journal"
)

const (
	// pages is how many ConfigMaps there are, and mostBytes how large each may be.
	pages     = 8
	mostBytes = 512 << 10
	// mostRaw is how much text a page holds before it is packed: packing all of it
	// with each write must not cost much.
	mostRaw = 2 << 20
	// atOnce is how many entries are written at once: so many fit into a page.
	atOnce  = 40
	prefix  = "karpenter-journal-"
	dataKey = "entries.jsonl.gz"
	// Every is how often what is new is written.
	Every = 15 * time.Second
)

// Keeper writes the journal down. It is not safe for concurrent use.
type Keeper struct {
	// Live reads from the API server, Client writes to it.
	Live      client.Reader
	Client    client.Client
	Journal   *journal.Journal
	Namespace string

	most   int // bytes of a page; 0: mostBytes
	loaded bool
	last   uint64 // the number of the last entry that is written down
	page   int    // that is being written
	text   []byte // what it holds
}

// Run writes until the context ends, and once more then. What cannot be written is
// tried again; complain is told of it.
func (k *Keeper) Run(ctx context.Context, complain func(error)) error {
	for {
		select {
		case <-ctx.Done():
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			return k.Pass(late)
		case <-time.After(Every):
		}
		if err := k.Pass(ctx); err != nil && ctx.Err() == nil {
			complain(err)
		}
	}
}

// Pass writes down what is new. The first reads what there is, so that numbers go
// on after a restart.
func (k *Keeper) Pass(ctx context.Context) error {
	if !k.loaded {
		if err := k.load(ctx); err != nil {
			return err
		}
	}
	for some := range slices.Chunk(k.Journal.Since(k.last), atOnce) {
		if err := k.add(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// add writes some entries, into the next page if they do not fit into this one.
func (k *Keeper) add(ctx context.Context, fresh []journal.Entry) error {
	lines, err := encode(fresh)
	if err != nil {
		return err
	}
	page, text := k.page, slices.Concat(k.text, lines)
	packed, err := pack(text)
	if err != nil {
		return err
	}
	if len(k.text) > 0 && (len(text) > mostRaw || len(packed) > cmp.Or(k.most, mostBytes)) {
		page, text = (k.page+1)%pages, lines
		if packed, err = pack(text); err != nil {
			return err
		}
	}
	if err := k.write(ctx, page, packed); err != nil {
		k.loaded = !apierrors.IsConflict(err) // somebody else wrote: read it first
		return fmt.Errorf("writing the journal into ConfigMap %s/%s%d: %w", k.Namespace, prefix, page, err)
	}
	k.page, k.text, k.last = page, text, fresh[len(fresh)-1].Seq
	return nil
}

// load reads all pages, and goes on with the one that was written last.
func (k *Keeper) load(ctx context.Context) error {
	all, err := read(ctx, k.Live, k.Namespace)
	if err != nil {
		return err
	}
	var entries []journal.Entry
	for _, p := range all {
		entries = append(entries, p.entries...)
	}
	if len(entries) > 0 && k.last == 0 {
		k.Journal.Resume(entries)
	}
	if len(all) > 0 {
		newest := all[len(all)-1]
		k.page, k.text, k.last = newest.number, newest.text, max(k.last, newest.last())
	}
	k.loaded = true
	return nil
}

func (k *Keeper) write(ctx context.Context, number int, packed []byte) error {
	m := &corev1.ConfigMap{}
	m.Namespace, m.Name = k.Namespace, prefix+strconv.Itoa(number)
	err := k.Live.Get(ctx, client.ObjectKeyFromObject(m), m)
	there := err == nil
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	m.Data, m.BinaryData = nil, map[string][]byte{dataKey: packed}
	if there {
		return k.Client.Update(ctx, m)
	}
	return k.Client.Create(ctx, m)
}

// page is what one ConfigMap holds.
type page struct {
	number  int
	text    []byte
	entries []journal.Entry // in order
}

func (p *page) last() uint64 { return p.entries[len(p.entries)-1].Seq }

// Read returns the entries that are written down, oldest first.
func Read(ctx context.Context, from client.Reader, namespace string) ([]journal.Entry, error) {
	all, err := read(ctx, from, namespace)
	var out []journal.Entry
	for _, p := range all {
		out = append(out, p.entries...)
	}
	return out, err
}

// read returns the pages that hold something, oldest first.
func read(ctx context.Context, from client.Reader, namespace string) (out []page, err error) {
	for number := range pages {
		m := &corev1.ConfigMap{}
		err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: prefix + strconv.Itoa(number)}, m)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the journal in ConfigMap %s/%s%d: %w", namespace, prefix, number, err)
		}
		text, entries := unpack(m.BinaryData[dataKey])
		if len(entries) > 0 {
			out = append(out, page{number, text, entries})
		}
	}
	slices.SortFunc(out, func(a, b page) int { return cmp.Compare(a.last(), b.last()) })
	return out, nil
}

func encode(entries []journal.Entry) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, e := range entries {
		if err := enc.Encode(e); err != nil {
			return nil, fmt.Errorf("writing entry %d: %w", e.Seq, err)
		}
	}
	return b.Bytes(), nil
}

func pack(text []byte) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(text); err != nil {
		return nil, err
	}
	err := z.Close()
	return b.Bytes(), err
}

// unpack returns the lines that can be read, as text and as entries.
func unpack(packed []byte) (text []byte, entries []journal.Entry) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, nil
	}
	all, _ := io.ReadAll(io.LimitReader(z, 4*mostRaw)) // a torn end is left out
	for line := range bytes.Lines(all) {
		var e journal.Entry
		if json.Unmarshal(line, &e) == nil && e.Seq > 0 {
			text, entries = append(text, line...), append(entries, e)
		}
	}
	return text, entries
}
