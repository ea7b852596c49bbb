{{- define "karpenter.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "karpenter.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "karpenter.selectorLabels" -}}
app.kubernetes.io/name: {{ include "karpenter.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* karpenter.metadata: name, labels and annotations of an object.
     Arguments: root, and optionally name, namespace, labels, annotations. */}}
{{- define "karpenter.metadata" -}}
{{- $root := .root -}}
name: {{ .name | default (include "karpenter.fullname" $root) }}
{{- with .namespace }}
namespace: {{ . }}
{{- end }}
labels:
  helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
  {{- include "karpenter.selectorLabels" $root | nindent 2 }}
  app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ $root.Release.Service }}
  {{- with mergeOverwrite dict $root.Values.additionalLabels (.labels | default dict) }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with mergeOverwrite dict $root.Values.additionalAnnotations (.annotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "karpenter.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- .Values.serviceAccount.name | default (include "karpenter.fullname" .) }}
{{- else }}
{{- .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{- define "karpenter.image" -}}
{{- $image := .Values.controller.image }}
{{- if kindIs "string" $image }}
{{- $image }}
{{- else if $image.digest }}
{{- printf "%s@%s" $image.repository $image.digest }}
{{- else }}
{{- printf "%s:%s" $image.repository ($image.tag | default .Chart.AppVersion) }}
{{- end }}
{{- end }}

{{/* karpenter.settings: the settings as JSON, with the names of v0.23 resolved. */}}
{{- define "karpenter.settings" -}}
{{- $settings := omit .Values.settings "aws" }}
{{- range $name, $value := .Values.settings.aws }}
{{- if not (kindIs "invalid" $value) }}
{{- $_ := set $settings (ternary "interruptionQueue" $name (eq $name "interruptionQueueName")) $value }}
{{- end }}
{{- end }}
{{- toJson $settings }}
{{- end }}

{{/* karpenter.settingsInConfigMap: "true" if they are not in the environment. */}}
{{- define "karpenter.settingsInConfigMap" -}}
{{- if or .Values.settingsConfigMap.create (include "karpenter.settings" . | fromJson).tags -}}
true
{{- end }}
{{- end }}

{{- define "karpenter.featureGates" -}}
{{- $gates := list }}
{{- range $name, $on := omit . "driftEnabled" }}
{{- if not (kindIs "invalid" $on) }}
{{- $gates = append $gates (printf "%s%s=%t" (upper (substr 0 1 $name)) (substr 1 -1 $name) $on) }}
{{- end }}
{{- end }}
{{- join "," $gates }}
{{- end }}

{{/* karpenter.settingsEnv: settings as environment variables; what is empty is
     left out, and so its default. */}}
{{- define "karpenter.settingsEnv" -}}
{{- $settings := include "karpenter.settings" . | fromJson }}
{{- range $name, $variable := dict
  "clusterName" "CLUSTER_NAME"
  "clusterEndpoint" "CLUSTER_ENDPOINT"
  "clusterCABundle" "CLUSTER_CA_BUNDLE"
  "interruptionQueue" "INTERRUPTION_QUEUE"
  "defaultInstanceProfile" "DEFAULT_INSTANCE_PROFILE"
  "batchMaxDuration" "BATCH_MAX_DURATION"
  "batchIdleDuration" "BATCH_IDLE_DURATION"
  "preferencePolicy" "PREFERENCE_POLICY"
  "minValuesPolicy" "MIN_VALUES_POLICY"
  "ignoreDRARequests" "IGNORE_DRA_REQUESTS"
  "isolatedVPC" "ISOLATED_VPC"
  "eksControlPlane" "EKS_CONTROL_PLANE"
  "vmMemoryOverheadPercent" "VM_MEMORY_OVERHEAD_PERCENT"
  "reservedENIs" "RESERVED_ENIS"
  "enablePodENI" "ENABLE_POD_ENI"
  "enableENILimitedPodDensity" "ENABLE_ENI_LIMITED_POD_DENSITY"
  "enableZonalShift" "ENABLE_ZONAL_SHIFT"
  "disableClusterStateObservability" "DISABLE_CLUSTER_STATE_OBSERVABILITY"
  "disableDryRun" "DISABLE_DRY_RUN"
  "amiRefreshInterval" "AMI_REFRESH_INTERVAL"
  "subnetRefreshInterval" "SUBNET_REFRESH_INTERVAL"
  "nominate" "NOMINATE"
  "nominationLead" "NOMINATION_LEAD"
  "machineCostPerHour" "MACHINE_COST_PER_HOUR"
}}
{{- $value := get $settings $name | toString }}
{{- if and $value (ne $value "<nil>") }}
- name: {{ $variable }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- with $settings.packing }}
- name: PACKING_TIE_TOLERANCE
  value: {{ .tieTolerance | toString | quote }}
- name: PACKING_PREFERENCE_TOLERANCE
  value: {{ .preferenceTolerance | toString | quote }}
{{- end }}
- name: DRIFT_ENABLED
  value: {{ $settings.featureGates.driftEnabled | toString | quote }}
- name: FEATURE_GATES
  value: {{ include "karpenter.featureGates" $settings.featureGates | quote }}
- name: AWS_FEATURE_GATES
  value: {{ include "karpenter.featureGates" $settings.awsFeatureGates | quote }}
{{- end }}

{{/* karpenter.outputPaths: where logs go. Arguments: the list for the
     controller, and the general one. */}}
{{- define "karpenter.outputPaths" -}}
{{- first . | default (last .) | toJson }}
{{- end }}
