import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { EventScanner } from "../../core/json/event_scanner.ts";
import { LineSplitter } from "../../core/json/line_splitter.ts";
import type { ObjectHeader } from "../../core/json/object_header.ts";
import { currentRuntime } from "./runtime.ts";

/**
 * Reads the watch events of Pods that another process makes.
 *
 * @param take Gets the header of each.
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
  const splitter = new LineSplitter();
  const scanner = new EventScanner();
  for await (const chunk of child.stdout) {
    splitter.push(chunk);
    while (splitter.next()) {
      scanner.scan(splitter);
      take(scanner.header);
    }
  }
}
