/**
 * Reads a short response and a stream, and leaves their connections idle, which must
 * not keep the process alive. Arguments: URL of the server, file of its authority.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import { openHttpTransport } from "../../core/client/transport/open_transport.ts";

const [server = "", file = ""] = process.argv.slice(2);
const transport = await openHttpTransport({
  server,
  ...(file !== "" && { certificateAuthority: readFileSync(file, "utf8") }),
});
for (const mayPause of [false, true]) {
  for (let i = 0; i < 2; i++) {
    const { body } = await transport.send({
      method: "GET",
      path: "/whoami",
      headers: {},
      mayPause,
    });
    let text = "";
    for await (const chunk of body) text += new TextDecoder().decode(chunk);
    process.stdout.write(`${JSON.parse(text).version}\n`);
  }
}
