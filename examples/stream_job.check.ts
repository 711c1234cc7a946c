/** Options of `coracle check examples/stream_job.ts`. */
import type { CheckOptions } from "@coracle/dev";
import { JobManager } from "./job_manager.ts";

const manager = new JobManager({ now: () => Date.now() });

const options: Partial<CheckOptions> = {
  // Jobs start, stop and count with each request.
  externals(request) {
    manager.tick();
    return manager.handle(request);
  },
  // Rollouts are counted, as are the jobs that they start, and the last one that
  // was healthy is kept.
  ignore: [
    "StreamJob .status.rollout",
    "StreamJob .status.job",
    "PUT http://127.0.0.1:8081/",
  ],
};

export default options;
