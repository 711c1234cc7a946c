import { Buffer } from "node:buffer";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { EventScanner } from "../../core/json/event_scanner.ts";
import { LineSplitter } from "../../core/json/line_splitter.ts";
import type { ObjectHeader } from "../../core/json/object_header.ts";
import { currentRuntime } from "./runtime.ts";

const CHUNK_BYTES = 64 * 1024;

/**
 * Reads the watch events of Pods from another process into reused memory, as a
 * watch is read on Node.
 *
 * @param take Consumer of each header.
 */
export async function feedPods(
  count: number,
  take: (header: ObjectHeader) => void,
): Promise<void> {
  const { program, flags } = currentRuntime();
  const file = fileURLToPath(new URL("./feed_pods.ts", import.meta.url));
  const child = spawn(program, [...flags, file, String(count)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = await once(child.stdout, "data");
  const splitter = new LineSplitter();
  const scanner = new EventScanner();
  const socket = connect({
    port: Number(String(line)),
    host: "127.0.0.1",
    onread: {
      buffer: Buffer.alloc(CHUNK_BYTES),
      callback(length, buffer) {
        splitter.push(buffer.subarray(0, length));
        while (splitter.next()) {
          scanner.scan(splitter);
          take(scanner.header);
        }
        return true;
      },
    },
  });
  await once(socket, "close");
}
