/** Options of `coracle check examples/uptime.ts`. */
import type { CheckOptions } from "@coracle/dev";

const options: Partial<CheckOptions> = {
  externals: () => Promise.resolve(new Response("up")),
};

export default options;
