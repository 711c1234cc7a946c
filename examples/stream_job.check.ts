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
  // Rollouts are counted, and so are the jobs that they start.
  ignore: [
    "StreamJob .status.rollout.attempt",
    "StreamJob .status.rollout.revision",
    "StreamJob .status.job.id",
    "StreamJob .status.job.checkpoint",
    "StreamJob .status.job.savepoint",
    "PUT http://127.0.0.1:8081/",
  ],
};

export default options;
