/**
 * Sends a request in every way that a client has: with the authority of a cluster, to
 * paths that begin with `/cluster`, and with those of the process, `/process`. Prints
 * the errors as JSON. Arguments: URL of the server, file of the cluster's authority.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import { openHttpTransport } from "../../core/client/transport/open_transport.ts";
import { openWebSocket } from "../../core/client/transport/web_socket.ts";

const [server = "", file = ""] = process.argv.slice(2);
const authority = readFileSync(file, "utf8");
const headers = { authorization: "Bearer secret" };
const errors: string[] = [];

async function attempt(work: Promise<unknown>): Promise<void> {
  await work.catch((error: unknown) => errors.push(String(error)));
}

for (
  const [name, certificateAuthority] of [["cluster", authority], ["process"]]
) {
  const options = { server, certificateAuthority };
  const transport = await openHttpTransport(options);
  const send = (kind: string, method: "GET" | "PATCH", mayPause = false) =>
    attempt(
      transport.send({ method, path: `/${name}/${kind}`, headers, mayPause }),
    );
  await send("read", "GET");
  await send("watch", "GET", true);
  await send("write", "PATCH");
  const path = `/${name}/socket`;
  await attempt(openWebSocket({ path, headers, protocols: [] }, options));
  await transport.close();
}
process.stdout.write(JSON.stringify(errors));
process.exit(0);
