/** Options of `coracle check examples/helm_release.ts`, for which Helm is needed. */
import type { CheckOptions } from "@coracle/dev";
import process from "node:process";
import { fileURLToPath } from "node:url";

process.env["CHARTS"] ??= fileURLToPath(new URL("charts", import.meta.url));

const release = (values: Record<string, unknown>) => ({
  apiVersion: "sample.coracle.dev/v1",
  kind: "HelmRelease",
  metadata: { namespace: "default", name: "shop" },
  spec: { chart: "shop", values },
});

const options: Partial<CheckOptions> = {
  // A release whose chart is not there keeps what it has, so charts are not made up.
  workload: [
    { apply: release({}) },
    { apply: release({ replicas: 2, withoutOrders: true }) },
    { delete: release({}) },
  ],
};

export default options;
