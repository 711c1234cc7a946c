/** Options of `coracle check examples/gallery/store_cluster.ts`. */
import type { CheckOptions } from "@coracle/dev";

const options: Partial<CheckOptions> = {
  // No member has data that would have to go to another one.
  externals: () => Promise.resolve(Response.json({ partitions: 0 })),
};

export default options;
