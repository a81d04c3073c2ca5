{{- define "ulak.labels" -}}
app.kubernetes.io/name: ulak
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "ulak.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "ulak.environment" -}}
envFrom:
  - secretRef:
      name: {{ .Values.existingSecret }}
env:
  - name: ULAK_HTTP__HOST
    value: "0.0.0.0"
  {{- range $name, $value := .Values.settings }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
{{- end }}

{{- define "ulak.security" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: ["ALL"]
{{- end }}
