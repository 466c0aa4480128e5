{{- define "everlong.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "everlong.labels" -}}
app.kubernetes.io/name: everlong
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "everlong.selector" -}}
app.kubernetes.io/name: everlong
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "everlong.account" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "everlong.name" .) }}{{ else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{- define "everlong.image" -}}
{{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end }}

{{/* The security context of every process: it may only serve. */}}
{{- define "everlong.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "everlong.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* Variables that all processes share, and the variables in "own". */}}
{{- define "everlong.environment" -}}
env:
  - name: EVERLONG_GATEWAY_STORE
    valueFrom:
      secretKeyRef:
        name: {{ required "store.existingSecret is missing: a secret with the URL of Postgres" .Values.store.existingSecret }}
        key: {{ .Values.store.key }}
  {{- range $name, $value := .own }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
  {{- range $name, $value := .Values.environment }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
{{- with .Values.environmentSecrets }}
envFrom:
  {{- range . }}
  - secretRef:
      name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "everlong.mounts" -}}
- name: config
  mountPath: /etc/everlong
  readOnly: true
- name: tmp
  mountPath: /tmp
{{- end }}

{{- define "everlong.volumes" -}}
- name: config
  configMap:
    name: {{ include "everlong.name" . }}
- name: tmp
  emptyDir:
    medium: Memory
    sizeLimit: 256Mi
{{- end }}
