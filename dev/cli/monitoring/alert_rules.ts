/** An alert of Prometheus. */
export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  /** Time for which it must hold. */
  readonly for?: string;
  readonly labels: { readonly severity: "warning" | "critical" };
  readonly annotations: { readonly summary: string };
}

/**
 * Alerts on an operator; they need the metrics of all replicas.
 *
 * @param selector Label matchers of its metrics, such as `job="shop"`.
 */
export function alertRules(selector: string): readonly AlertRule[] {
  const of = (name: string, ...more: readonly string[]) =>
    `coracle_${name}{${[selector, ...more].join(",")}}`;
  return [
    {
      alert: "ObjectFailsForLong",
      expr: `max by (controller) (${of("oldest_failure_seconds")}) > 900`,
      labels: { severity: "warning" },
      annotations: {
        summary:
          "{{ $labels.controller }}: an object has failed for 15 minutes",
      },
    },
    {
      alert: "ManyObjectsFail",
      expr: `sum by (controller) (${
        of("failing_objects")
      }) > 0.1 * max by (controller) (${of("primaries")})`,
      for: "10m",
      labels: { severity: "warning" },
      annotations: {
        summary:
          "{{ $labels.controller }}: more than a tenth of the objects fail",
      },
    },
    {
      alert: "RetriesExhausted",
      expr: `sum by (controller) (increase(${
        of("retries_exhausted")
      }[15m])) > 0`,
      labels: { severity: "warning" },
      annotations: {
        summary: "{{ $labels.controller }}: an object has used up its retries",
      },
    },
    {
      alert: "NoReplicaIsActive",
      expr: `sum by (controller) (${of("controller_active")}) == 0`,
      for: "5m",
      labels: { severity: "critical" },
      annotations: {
        summary: "{{ $labels.controller }}: no replica runs its objects",
      },
    },
    {
      alert: "CachesAreNotSynced",
      expr: `min by (controller) (${of("controller_ready")}) == 0`,
      for: "5m",
      labels: { severity: "warning" },
      annotations: {
        summary:
          "{{ $labels.controller }}: the caches of a replica are not synced",
      },
    },
    {
      alert: "WatchOrSourceFails",
      expr: `min by (controller) (${of("controller_healthy")}) == 0`,
      for: "5m",
      labels: { severity: "warning" },
      annotations: {
        summary: "{{ $labels.controller }}: a watch or an event source fails",
      },
    },
    {
      alert: "WatchIsStale",
      expr: `max by (instance, kind) (${
        of("informer_staleness_seconds")
      }) > 300`,
      for: "5m",
      labels: { severity: "warning" },
      annotations: {
        summary:
          "{{ $labels.instance }}: nothing has arrived of {{ $labels.kind }} for minutes, not even a bookmark",
      },
    },
    {
      alert: "SnapshotIsOld",
      expr: `max by (instance, kind) (${of("snapshot_age_seconds")}) > 900`,
      labels: { severity: "warning" },
      annotations: {
        summary:
          "{{ $labels.instance }}: the snapshot of {{ $labels.kind }} is not written, so that its next start lists",
      },
    },
    {
      alert: "LeaseCannotBeRenewed",
      expr: `max by (lease, instance) (${of("lease_failing_seconds")}) > 60`,
      labels: { severity: "critical" },
      annotations: {
        summary:
          "{{ $labels.instance }}: Lease {{ $labels.lease }} cannot be read or renewed, and nothing runs without it",
      },
    },
    {
      alert: "RunIgnoresItsSignal",
      expr: `sum by (controller) (${of("reconciliations_overdue")}) > 0`,
      for: "5m",
      labels: { severity: "warning" },
      annotations: {
        summary:
          "{{ $labels.controller }}: a run does not end, and holds up its object",
      },
    },
    {
      alert: "WritesDoNotLast",
      expr: `sum by (controller) (increase(${
        of("write_loops_total")
      }[15m])) > 0`,
      labels: { severity: "warning" },
      annotations: {
        summary:
          "{{ $labels.controller }}: another client undoes what it writes",
      },
    },
    {
      alert: "MemoryIsShort",
      expr: `${of("memory_short")} > 0`,
      for: "5m",
      labels: { severity: "warning" },
      annotations: {
        summary:
          "{{ $labels.instance }}: the process is close to its memory limit",
      },
    },
    {
      alert: "WebhookCertificateEnds",
      expr: `min by (instance) (${
        of("webhook_certificate_expiration_timestamp_seconds")
      }) - time() < 604800`,
      labels: { severity: "critical" },
      annotations: {
        summary:
          "{{ $labels.instance }}: the webhook certificate ends within a week",
      },
    },
    {
      alert: "WebhooksAreNotRegistered",
      expr: `min by (instance) (${of("webhooks_registered")}) == 0`,
      for: "5m",
      labels: { severity: "warning" },
      annotations: {
        summary:
          "{{ $labels.instance }}: the API server does not know the webhooks",
      },
    },
    {
      alert: "AdmissionFails",
      expr: `sum by (kind) (increase(${
        of("admission_requests_total", 'outcome="failed"')
      }[15m])) > 0`,
      labels: { severity: "warning" },
      annotations: {
        summary: "{{ $labels.kind }}: an admission handler fails",
      },
    },
    {
      alert: "WebhookCallersAreRefused",
      expr: `sum by (instance, status) (increase(${
        of("webhook_refusals_total", 'status=~"401|403|429"')
      }[15m])) > 0`,
      labels: { severity: "warning" },
      annotations: {
        summary:
          "{{ $labels.instance }}: callers of the webhooks are refused with {{ $labels.status }}",
      },
    },
    {
      alert: "JobIsLate",
      expr: `time() - max by (controller) (${
        of("job_next_run_timestamp_seconds")
      }) > 600`,
      labels: { severity: "warning" },
      annotations: {
        summary:
          "{{ $labels.controller }}: its schedule has been due for ten minutes",
      },
    },
  ];
}
