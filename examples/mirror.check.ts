/** Options of `coracle check examples/mirror.ts`. */
import type { CheckOptions } from "@coracle/dev";
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";

// Each run begins with an empty folder, which no other process uses.
const folder = join(tmpdir(), `mirror-check-${process.pid}`);
rmSync(folder, { recursive: true, force: true });
process.env["MIRROR_STORE"] = folder;

const options: Partial<CheckOptions> = {
  // Each URL has a file of its own, which never changes.
  externals({ url, headers }) {
    const etag = `"${url}"`;
    const isKnown = headers.get("if-none-match") === etag;
    return Promise.resolve(
      isKnown
        ? new Response(null, { status: 304 })
        : new Response(`The file of ${url}`, { headers: { etag } }),
    );
  },
  // A mirror that is suspended keeps what it has.
  ignore: ["Mirror .status.artifact"],
};

export default options;
