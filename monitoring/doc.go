// Package monitoring holds a dashboard and alert rules; its tests read them as Prometheus does.
package monitoring
