/** Options of the check of `cleanup_throws_when_gone.ts`: a DNS that remembers. */
import type { CheckOptions } from "@coracle/dev";

const records = new Map<string, string>();

const options: Partial<CheckOptions> = {
  async externals(request) {
    const id = new URL(request.url).pathname.split("/")[2] ?? "";
    if (request.method === "PUT") records.set(id, await request.text());
    else if (!records.delete(id)) return new Response(null, { status: 404 });
    return Response.json({});
  },
};

export default options;
