/** Options of `coracle check examples/gallery/cron_job.ts`. */
import type { CheckOptions } from "@coracle/dev";

const options: Partial<CheckOptions> = {
  // A check waits until nothing has changed for minutes, so a Job every minute
  // would never let it end.
  examples: [{
    apiVersion: "tutorial.coracle.dev/v1",
    kind: "CronJob",
    metadata: { name: "report" },
    spec: {
      schedule: "0 3 * * *",
      jobTemplate: {
        spec: {
          template: {
            spec: {
              restartPolicy: "Never",
              containers: [{ name: "main", image: "busybox" }],
            },
          },
        },
      },
    },
  }],
};

export default options;
