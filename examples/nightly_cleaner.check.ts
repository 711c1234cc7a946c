/** Options of `coracle check examples/nightly_cleaner.ts`. */
import type { CheckOptions } from "@coracle/dev";

const job = (name: string) => ({
  apiVersion: "batch/v1",
  kind: "Job",
  metadata: { name, namespace: "default" },
  spec: {
    template: {
      spec: {
        restartPolicy: "Never",
        containers: [{ name: "main", image: "busybox" }],
      },
    },
  },
});

const ENDED = "2020-01-01T00:00:00Z";

/** The end of a Job, which its controller writes. */
const ended = (name: string) => {
  const { spec: _, ...object } = job(name);
  const common = { status: "True", lastTransitionTime: ENDED };
  const status = {
    startTime: ENDED,
    completionTime: ENDED,
    conditions: [
      { type: "SuccessCriteriaMet", ...common },
      { type: "Complete", ...common },
    ],
  };
  return { ...object, status };
};

const options: Partial<CheckOptions> = {
  workload: [
    { apply: job("a") },
    { apply: job("b") },
    { patch: ended("a") },
    { wait: "30h" },
    { patch: ended("b") },
    { wait: "30h" },
  ],
};

export default options;
