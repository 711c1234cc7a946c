/**
 * Opens many connections that watch the ConfigMaps of the namespace `default`, and
 * prints a line when all of them have seen an event of a type:
 *
 * ```sh
 * node watch_clients.ts PORT TOKEN COUNT
 * ```
 *
 * @module
 */
import { connect } from "node:net";
import process from "node:process";

const [port, token, count] = process.argv.slice(2);
/** Number of connections that are opened at the same time. */
const BATCH = 100;
const seen = new Map([["ADDED", 0], ["MODIFIED", 0]]);

function open(): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), "127.0.0.1");
    let text = "";
    socket.on("error", reject);
    socket.on("close", () => process.exit(1));
    socket.on("data", (chunk) => {
      text += chunk;
      for (const [type, before] of seen) {
        const at = text.indexOf(`"type":"${type}"`);
        if (at < 0) continue;
        text = text.slice(at + type.length);
        seen.set(type, before + 1);
        if (before + 1 === Number(count)) process.stdout.write(`${type}\n`);
        resolve();
      }
    });
    socket.write(
      "GET /api/v1/namespaces/default/configmaps?watch=1 HTTP/1.1\r\n" +
        `host: localhost\r\nauthorization: Bearer ${token}\r\n\r\n`,
    );
  });
}

for (let opened = 0; opened < Number(count); opened += BATCH) {
  const size = Math.min(BATCH, Number(count) - opened);
  await Promise.all(Array.from({ length: size }, open));
}
