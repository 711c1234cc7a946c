/** Options of `coracle check examples/release.ts`. */
import type { CheckOptions } from "@coracle/dev";

const options: Partial<CheckOptions> = {
  // Attempts and revisions are counted, so they tell how often it was deployed.
  ignore: [
    "Release .status.rollout.attempt",
    "Release .status.rollout.revision",
    'Deployment .metadata.annotations["sample.coracle.dev/attempt"]',
  ],
};

export default options;
