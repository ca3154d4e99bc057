# Licences of what toolonce links

Written by `make licences`. A program links of these what it imports: the core links no OpenTelemetry, and a program
without `pgstore` no pgx.

| module | version | licence |
| --- | --- | --- |
{{- range . }}
| {{ .Name }} | {{ .Version }} | {{ .LicenseName }} |
{{- end }}
