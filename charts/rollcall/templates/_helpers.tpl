{{- define "rollcall.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 40 characters, so that what is appended still makes a DNS label. */}}
{{- define "rollcall.fullname" -}}
{{- $name := include "rollcall.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the pods of a component. Takes root and component. */}}
{{- define "rollcall.selectorLabels" -}}
app.kubernetes.io/name: {{ include "rollcall.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Labels of an object. Takes root and component. */}}
{{- define "rollcall.labels" -}}
{{ include "rollcall.selectorLabels" . }}
app.kubernetes.io/part-of: rollcall
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "rollcall.image" -}}
{{- with .Values.image -}}
{{- printf "%s:%s" .repository (default $.Chart.AppVersion .tag) -}}
{{- with .digest }}@{{ . }}{{ end -}}
{{- end -}}
{{- end -}}

{{- define "rollcall.customResourcesNamespace" -}}
{{- default .Release.Namespace .Values.customResources.namespace -}}
{{- end -}}

{{/* Namespace of the ApiClients and their Secrets. */}}
{{- define "rollcall.clientsNamespace" -}}
{{- default (printf "%s-clients" (.Release.Namespace | trunc 55 | trimSuffix "-")) .Values.clients.namespace -}}
{{- end -}}

{{/* Namespace of the Services of registered names. */}}
{{- define "rollcall.dnsNamespace" -}}
{{- default (printf "%s-services" (.Release.Namespace | trunc 54 | trimSuffix "-")) .Values.dns.namespace -}}
{{- end -}}

{{/* Name of the Secret with the keys that the gateway signs with. */}}
{{- define "rollcall.gatewayKeys" -}}
{{- include "rollcall.fullname" . }}-gateway-keys
{{- end -}}

{{/* Base URLs in the cluster, whether or not the process is enabled: somebody else's may have the name. */}}
{{- define "rollcall.registryUrl" -}}
http://{{ include "rollcall.fullname" . }}-registry:{{ dig "registry" "ports" "http" "port" 3001 .Values.processes }}
{{- end -}}
{{- define "rollcall.gatewayUrl" -}}
http://{{ include "rollcall.fullname" . }}-gateway:{{ dig "gateway" "ports" "http" "port" 3000 .Values.processes }}
{{- end -}}
{{- define "rollcall.gatewayClusterUrl" -}}
http://{{ include "rollcall.fullname" . }}-gateway.{{ .Release.Namespace }}:{{ dig "gateway" "ports" "http" "port" 3000 .Values.processes }}
{{- end -}}

{{/* Where people and providers reach the gateway. */}}
{{- define "rollcall.publicUrl" -}}
{{- $gateway := get (include "rollcall.processes" . | fromYaml) "gateway" | default dict -}}
{{- $host := dig "ingress" "enabled" false $gateway | ternary (dig "ingress" "hosts" list $gateway | first) "" -}}
{{- $hostname := dig "httpRoute" "enabled" false $gateway | ternary (dig "httpRoute" "hostnames" list $gateway | first) "" -}}
{{- if .Values.publicUrl -}}
{{- .Values.publicUrl -}}
{{- else if and $host (not (hasPrefix "*" $host)) -}}
{{- ternary "https" "http" $gateway.ingress.tls.enabled }}://{{ $host }}
{{- else if and $hostname (not (hasPrefix "*" $hostname)) -}}
https://{{ $hostname }}
{{- else -}}
{{- include "rollcall.gatewayClusterUrl" . -}}
{{- end -}}
{{- end -}}

{{/* Name of the Secret with the keys of a process' vault. Takes the root and the name of the process. */}}
{{- define "rollcall.vaultSecret" -}}
{{- $root := first . -}}
{{- default (printf "%s-%s-vault" (include "rollcall.fullname" $root) (last .)) (get $root.Values (last .)).vault.existingSecret -}}
{{- end -}}

{{/* Name of the Secret with the providers of a process; empty: there is none. Takes the root and the name of the process. */}}
{{- define "rollcall.providersSecret" -}}
{{- $root := first . -}}
{{- $given := (get $root.Values (last .)).providers -}}
{{- if $given.existingSecret -}}
{{- $given.existingSecret -}}
{{- else if $given.content -}}
{{- include "rollcall.fullname" $root }}-{{ last . }}-providers
{{- end -}}
{{- end -}}

{{/* Id of the client by which payment has mails sent; empty: nobody sends any. Takes the root. */}}
{{- define "rollcall.paymentClient" -}}
{{- $processes := include "rollcall.processes" . | fromYaml -}}
{{- if .Values.payment.client.existingSecret -}}
{{- required "payment.client.id says whose secret is in payment.client.existingSecret" .Values.payment.client.id -}}
{{- else if and (hasKey $processes "payment") (hasKey $processes "communication") (hasKey $processes "gateway") -}}
{{- include "rollcall.fullname" . }}-payment
{{- end -}}
{{- end -}}

{{/* Id of the client by which federation tells services who calls, which is its registered name; empty: they are not told. Takes the root. */}}
{{- define "rollcall.federationClient" -}}
{{- $processes := include "rollcall.processes" . | fromYaml -}}
{{- if or .Values.federation.client.existingSecret (and (hasKey $processes "federation") (hasKey $processes "gateway")) -}}
federation
{{- end -}}
{{- end -}}

{{/* Name of the Secret with the secret of a process' client; empty: it has none. Takes the root and the name of the process. */}}
{{- define "rollcall.clientSecret" -}}
{{- $root := first . -}}
{{- if include (printf "rollcall.%sClient" (last .)) $root -}}
{{- default (printf "%s-%s-client" (include "rollcall.fullname" $root) (last .)) (get $root.Values (last .)).client.existingSecret -}}
{{- end -}}
{{- end -}}

{{/* Name of the Secret in which the registry keeps the secrets of webhooks. */}}
{{- define "rollcall.webhookSecrets" -}}
{{- include "rollcall.fullname" . }}-webhooks
{{- end -}}

{{/*
The second map over the first, in all depths, as YAML. Sprig's mergeOverwrite keeps the first's value where the second's is false, 0
or empty, so that nothing could be switched off.
*/}}
{{- define "rollcall.merged" -}}
{{- $result := deepCopy .base -}}
{{- range $key, $value := .over -}}
{{- $present := get $result $key -}}
{{- if and (kindIs "map" $value) (kindIs "map" $present) -}}
{{- $_ := set $result $key (include "rollcall.merged" (dict "base" $present "over" $value) | fromYaml) -}}
{{- else -}}
{{- $_ := set $result $key $value -}}
{{- end -}}
{{- end -}}
{{- toYaml $result -}}
{{- end -}}

{{/* The enabled processes with all their fields, by name, as YAML. Takes the root. */}}
{{- define "rollcall.processes" -}}
{{- $processes := dict -}}
{{- range $name, $given := .Values.processes -}}
{{- $process := include "rollcall.merged" (dict "base" $.Values.defaults "over" (default dict $given)) | fromYaml -}}
{{- if $process.enabled -}}
{{- $_ := set $processes $name $process -}}
{{- end -}}
{{- end -}}
{{- toYaml $processes -}}
{{- end -}}

{{/* The namespaces of a scope as a list in JSON; ["*"] means all. Takes root and scope. */}}
{{- define "rollcall.namespacesOf" -}}
{{- $own := list (include "rollcall.customResourcesNamespace" .root) -}}
{{- if eq .scope "cluster" -}}
{{- list "*" | toJson -}}
{{- else if eq .scope "release" -}}
{{- list .root.Release.Namespace | toJson -}}
{{- else if eq .scope "customResources" -}}
{{- $own | toJson -}}
{{- else if eq .scope "clients" -}}
{{- list (include "rollcall.clientsNamespace" .root) | toJson -}}
{{- else if eq .scope "dns" -}}
{{- list (include "rollcall.dnsNamespace" .root) | toJson -}}
{{- else -}}
{{- $given := (get .root.Values .scope).namespaces -}}
{{- ternary (list "*") (default $own $given | uniq) (has "*" $given) | toJson -}}
{{- end -}}
{{- end -}}

{{/* The namespaces of a scope as a setting of the processes. Takes root, scope and what stands for all namespaces. */}}
{{- define "rollcall.namespaceSetting" -}}
{{- $namespaces := include "rollcall.namespacesOf" . | fromJsonArray -}}
{{- ternary .all (join "," $namespaces) (has "*" $namespaces) -}}
{{- end -}}

{{/* The processes that have a role in PostgreSQL, by name, as YAML. Takes the root. */}}
{{- define "rollcall.databaseUsers" -}}
{{- $users := dict -}}
{{- range $name, $process := include "rollcall.processes" . | fromYaml -}}
{{- if $process.database -}}
{{- $_ := set $users $name $process -}}
{{- end -}}
{{- end -}}
{{- toYaml $users -}}
{{- end -}}

{{/* The URLs of a database in the values, by the keys of its Secret, as YAML. Takes root and database (postgresql or redis). */}}
{{- define "rollcall.givenUrls" -}}
{{- $external := (get .root.Values .database).external -}}
{{- $urls := dict -}}
{{- range $process, $url := $external.urls -}}
{{- $_ := set $urls (printf "%s-url" $process) $url -}}
{{- end -}}
{{- with $external.url -}}
{{- $_ := set $urls "url" . -}}
{{- end -}}
{{- toYaml $urls -}}
{{- end -}}

{{/* Whether a database is embedded: "true" or nothing. Takes root and database. */}}
{{- define "rollcall.isEmbedded" -}}
{{- $external := (get .root.Values .database).external -}}
{{- if not (or $external.url $external.urls $external.secretName) }}true{{ end -}}
{{- end -}}

{{/* Name of the Secret with the URLs of a database. Takes root and database. */}}
{{- define "rollcall.databaseSecret" -}}
{{- $values := get .root.Values .database -}}
{{- if $values.external.secretName -}}
{{- $values.external.secretName -}}
{{- else if not (include "rollcall.isEmbedded" .) -}}
{{- /* Not the embedded one's, whose passwords are kept as long as its volume. */ -}}
{{- include "rollcall.fullname" .root }}-{{ .database }}-external
{{- else if $values.existingSecret -}}
{{- $values.existingSecret -}}
{{- else -}}
{{- include "rollcall.fullname" .root }}-{{ .database }}
{{- end -}}
{{- end -}}

{{/* The environment variable with a process' own URL of PostgreSQL. Takes root and name. */}}
{{- define "rollcall.postgresqlUrl" -}}
{{- $external := .root.Values.postgresql.external -}}
{{- if and $external.urls (not $external.secretName) (not (get $external.urls .name)) -}}
{{- fail (printf "postgresql.external.urls has no URL for %s: give it one, or set processes.%s.enabled to false" .name .name) -}}
{{- end -}}
- name: ROLLCALL_DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ include "rollcall.databaseSecret" (dict "root" .root "database" "postgresql") }}
      key: {{ .name }}-url
{{- end -}}

{{/* An environment variable with the URL of Redis. Takes root and variable. */}}
{{- define "rollcall.redisUrl" -}}
{{- $external := .root.Values.redis.external -}}
- name: {{ .variable }}
  valueFrom:
    secretKeyRef:
      name: {{ include "rollcall.databaseSecret" (dict "root" .root "database" "redis") }}
      key: {{ ternary $external.secretKey "url" (ne $external.secretName "") }}
{{- end -}}

{{/*
Tells content of a Secret that is in the values from the next, by chance: a checksum would let who reads the pods try passwords. It is
kept beside the content as long as that stays, and made once for all who ask in one rendering. Takes root, secret (its name), annotation
and data (texts by key).
*/}}
{{- define "rollcall.secretVersion" -}}
{{- if not (hasKey .root.Values "versions") -}}
{{- $_ := set .root.Values "versions" dict -}}
{{- end -}}
{{- $versions := .root.Values.versions -}}
{{- if not (hasKey $versions .secret) -}}
{{- $present := lookup "v1" "Secret" .root.Release.Namespace .secret -}}
{{- $data := dict -}}
{{- range $key, $text := .data -}}
{{- $_ := set $data $key (b64enc $text) -}}
{{- end -}}
{{- $isSame := eq (dig "data" dict $present | toJson) (toJson $data) -}}
{{- $kept := ternary (dig "metadata" "annotations" .annotation "" $present) "" $isSame -}}
{{- $_ := set $versions .secret (default (randAlphaNum 16) $kept) -}}
{{- end -}}
{{- get $versions .secret -}}
{{- end -}}

{{/* The version of the URLs in the values. Takes root and database. */}}
{{- define "rollcall.urlVersion" -}}
{{- $given := include "rollcall.givenUrls" . | fromYaml -}}
{{- $secret := include "rollcall.databaseSecret" . -}}
{{- include "rollcall.secretVersion" (dict "root" .root "secret" $secret "annotation" "rollcall.dev/url-version" "data" $given) -}}
{{- end -}}

{{/* The version of the providers in the values; empty: they are not there. Takes the root and the name of the process. */}}
{{- define "rollcall.providersVersion" -}}
{{- $root := first . -}}
{{- $given := dig "providers" dict (get $root.Values (last .) | default dict) -}}
{{- if and $given.content (not $given.existingSecret) -}}
{{- $data := dict "providers.yaml" (toYaml $given.content) -}}
{{- $secret := include "rollcall.providersSecret" . -}}
{{- include "rollcall.secretVersion" (dict "root" $root "secret" $secret "annotation" "rollcall.dev/providers-version" "data" $data) -}}
{{- end -}}
{{- end -}}

{{/* Annotations that start pods anew when a URL in the values changes. Takes root, postgresql and redis (whether they are used). */}}
{{- define "rollcall.urlVersions" -}}
{{- $root := .root -}}
{{- $used := . -}}
{{- range $database := list "postgresql" "redis" -}}
{{- $given := include "rollcall.givenUrls" (dict "root" $root "database" $database) | fromYaml -}}
{{- if and $given (get $used $database) }}
rollcall.dev/{{ $database }}-url-version: {{ include "rollcall.urlVersion" (dict "root" $root "database" $database) | quote }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A volume with a token for the registry. Takes root and name. */}}
{{- define "rollcall.registryToken" -}}
- name: {{ .name }}
  projected:
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 3600
          {{- with .root.Values.registry.authentication.audience }}
          {{- if ne . "api-server" }}
          audience: {{ . | quote }}
          {{- end }}
          {{- end }}
{{- end -}}

{{/* The pods that may reach the registry, as peers of a NetworkPolicy. */}}
{{- define "rollcall.namespacePeers" -}}
{{- if has "*" .Values.registry.namespaces -}}
- namespaceSelector: {}
{{- else -}}
{{- range prepend .Values.registry.namespaces .Release.Namespace | uniq }}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: {{ . }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What the restricted Pod Security Standard asks of a container. */}}
{{- define "rollcall.restrictedContainer" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Where a pod runs. Takes nodeSelector, tolerations, affinity and priorityClassName. */}}
{{- define "rollcall.scheduling" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{- define "rollcall.imagePullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Egress that every pod with a name to look up needs: DNS, wherever it is (a cache of the node has a link-local address). */}}
{{- define "rollcall.dnsEgress" -}}
- ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
{{- end -}}
