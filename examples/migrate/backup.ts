/**
 * Program that dumps a database in a pod: `backup_client_node.ts`, moved.
 *
 * @module
 */
import type { Client } from "@coracle/operator/client";
import { Pod } from "@coracle/operator/kinds";

/** Dumps the database of the first running pod; an error has the end of its log. */
export async function backup(
  client: Client,
  namespace: string,
): Promise<string> {
  const labelSelector = "app=database";
  const { items } = await client.list(Pod, { namespace, labelSelector });
  const pod = items.find(({ status }) => status?.phase === "Running");
  if (pod === undefined) throw new Error("No database runs");
  const key = { namespace, name: pod.metadata.name };

  const program = await client.exec(key, {
    container: "main",
    command: ["dump", "--all"],
  });
  const { code, stdout, stderr } = await program.output();
  if (code === 0) return stdout;

  let end = "";
  const log = client.logs(key, { container: "main", tailLines: 2 });
  for await (const line of log) end += `${line}\n`;
  throw new Error(`The dump ended with ${code}: ${stderr.trim()}\n${end}`);
}
