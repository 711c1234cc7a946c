/** Options of `coracle check examples/gallery/reloader.ts`. */
import type { CheckOptions } from "@coracle/dev";

const options: Partial<CheckOptions> = {
  // The hash of what is gone stays: nothing restarts for a deletion.
  ignore: [
    'Deployment .metadata.annotations["gallery.coracle.dev/config-hash"]',
  ],
};

export default options;
