import { operatorLabels } from "../operator_deployment.ts";
import { alertRules } from "./alert_rules.ts";
import dashboard from "./grafana_dashboard.json" with { type: "json" };

/** Name, namespace and labels of the objects for those who watch an operator. */
interface Place {
  readonly name: string;
  readonly namespace: string;
  /** Name and namespace within other texts; by default those above. */
  readonly nameText?: string;
  readonly namespaceText?: string;
  /** Further labels, such as those that Prometheus or Grafana select by. */
  readonly moreLabels?: object;
}

/** PrometheusRule with the alerts on the metrics of one operator. */
export function prometheusRule(
  { name, namespace, moreLabels, ...texts }: Place,
): unknown {
  const { nameText: job = name, namespaceText: place = namespace } = texts;
  const rules = alertRules(`job="${job}",namespace="${place}"`);
  return {
    apiVersion: "monitoring.coreos.com/v1",
    kind: "PrometheusRule",
    metadata: {
      name,
      namespace,
      labels: { ...operatorLabels(name), ...moreLabels },
    },
    spec: { groups: [{ name: job, rules }] },
  };
}

/** Label of the dashboards that the sidecar of Grafana's chart loads. */
export const DASHBOARD_LABELS = { grafana_dashboard: "1" };

/** ConfigMap with the dashboard of one operator. */
export function grafanaDashboard(
  { name, namespace, moreLabels = DASHBOARD_LABELS, ...texts }: Place,
): unknown {
  const { nameText: job = name } = texts;
  const own = { ...dashboard, uid: job, title: job };
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: `${name}-dashboard`,
      namespace,
      labels: { ...operatorLabels(name), ...moreLabels },
    },
    data: { [`${job}.json`]: JSON.stringify(own, null, 1) },
  };
}
