package runner

import (
	"bytes"
	"context"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// logsResource are kwok's objects that say where a pod's logs are.
var logsResource = schema.GroupVersionResource{Group: "kwok.x-k8s.io", Version: "v1alpha1", Resource: "logs"}

// serveLogs lets kwok serve a file as the pod's logs.
func (r *Runner) serveLogs(ctx context.Context, pod *corev1.Pod, file string) error {
	_, err := r.objects.Resource(logsResource).Namespace(pod.Namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": logsResource.GroupVersion().String(), "kind": "Logs",
		"metadata": map[string]any{"name": pod.Name},
		"spec": map[string]any{"logs": []any{
			map[string]any{"containers": []any{Container}, "logsFile": file, "follow": true},
		}},
	}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (r *Runner) forgetLogs(ctx context.Context, pod *corev1.Pod) error {
	return r.objects.Resource(logsResource).Namespace(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{})
}

// logFile takes the output of a process and writes it as container runtimes do:
// each line with its time and stream.
type logFile struct {
	path string
	file *os.File

	mu   sync.Mutex
	rest []byte // of a line that has not ended
}

func openLog(path string) (*logFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	return &logFile{path: path, file: file}, err
}

// Write writes the lines that are whole.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	end := bytes.LastIndexByte(l.rest, '\n') + 1
	var out bytes.Buffer
	for line := range bytes.Lines(l.rest[:end]) {
		out.WriteString(time.Now().UTC().Format(time.RFC3339Nano) + " stdout F ")
		out.Write(line)
	}
	l.rest = bytes.Clone(l.rest[end:])
	_, err := l.file.Write(out.Bytes())
	return len(p), err
}

// Close writes what is left.
func (l *logFile) Close() error {
	if len(l.rest) > 0 {
		_, _ = l.Write([]byte("\n"))
	}
	return l.file.Close()
}
