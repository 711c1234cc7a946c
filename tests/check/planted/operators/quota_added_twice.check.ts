/** Options of the check of `quota_added_twice.ts`: a quota that anybody may raise. */
import type { CheckOptions } from "@coracle/dev";

const options: Partial<CheckOptions> = {
  externals: () => Promise.resolve(Response.json({})),
};

export default options;
