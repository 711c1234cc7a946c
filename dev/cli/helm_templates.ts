/** Templates that all Helm charts share; CHART stands for the chart's name. */

export const HELPERS = `{{- define "CHART.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "CHART.serviceAccountName" -}}
{{- if .Values.serviceAccount.name -}}
{{- .Values.serviceAccount.name -}}
{{- else if .Values.serviceAccount.create -}}
{{- include "CHART.fullname" . -}}
{{- else -}}
default
{{- end -}}
{{- end -}}

{{- define "CHART.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (.tag | default $.Chart.AppVersion | toString) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "CHART.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "CHART.labels" -}}
{{ include "CHART.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | quote }}
{{- end -}}
`;

export const EXTRA_RULES =
  `{{- if and .Values.rbac.create .Values.rbac.extraRules }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: "{{ include "CHART.fullname" . }}-extra"
  labels:
    {{- include "CHART.labels" . | nindent 4 }}
rules:
  {{- toYaml .Values.rbac.extraRules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: "{{ include "CHART.fullname" . }}-extra"
  labels:
    {{- include "CHART.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: "{{ include "CHART.fullname" . }}-extra"
subjects:
  - kind: ServiceAccount
    name: {{ include "CHART.serviceAccountName" . | quote }}
    namespace: {{ .Release.Namespace | quote }}
{{- end }}
`;

export const NOTES =
  `The operator runs as Deployment {{ include "CHART.fullname" . }}:

  kubectl --namespace {{ .Release.Namespace }} rollout status deployment/{{ include "CHART.fullname" . }}
  kubectl --namespace {{ .Release.Namespace }} logs deployment/{{ include "CHART.fullname" . }}
{{- if not .Values.crds.install }}

It needs its CustomResourceDefinitions, which this release does not install.
{{- else if .Values.crds.keep }}

The CustomResourceDefinitions and the objects of their kinds stay when the release
is uninstalled.
{{- end }}
`;
