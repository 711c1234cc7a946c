/**
 * Program that dumps a database in a pod, as it is written with client-node:
 * `backup.ts` is the same program on `@coracle/operator/client`.
 *
 * @module
 */
import {
  CoreV1Api,
  Exec,
  type KubeConfig,
  Log,
  type V1Status,
} from "@kubernetes/client-node";
import { Buffer } from "node:buffer";
import { once } from "node:events";
import { PassThrough, Writable } from "node:stream";

/** A stream that keeps what is written to it. */
function keeper(): { readonly stream: Writable; text(): string } {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(Buffer.from(chunk));
      done();
    },
  });
  return { stream, text: () => Buffer.concat(chunks).toString() };
}

/** Dumps the database of the first running pod; an error has the end of its log. */
export async function backup(
  config: KubeConfig,
  namespace: string,
): Promise<string> {
  const core = config.makeApiClient(CoreV1Api);
  const { items } = await core.listNamespacedPod({
    namespace,
    labelSelector: "app=database",
  });
  const pod = items.find(({ status }) => status?.phase === "Running");
  const name = pod?.metadata?.name;
  if (name === undefined) throw new Error("No database runs");

  const [out, errors] = [keeper(), keeper()];
  const status = await new Promise<V1Status>((resolve, reject) => {
    new Exec(config).exec(
      namespace,
      name,
      "main",
      ["dump", "--all"],
      out.stream,
      errors.stream,
      null,
      false,
      resolve,
    ).then((socket) => socket.on("error", reject), reject);
  });
  if (status.status === "Success") return out.text();

  const log = new PassThrough();
  const end = keeper();
  log.pipe(end.stream);
  await new Log(config).log(namespace, name, "main", log, { tailLines: 2 });
  await once(end.stream, "finish");
  const code = status.details?.causes?.find(({ reason }) =>
    reason === "ExitCode"
  )?.message;
  throw new Error(
    `The dump ended with ${code}: ${errors.text().trim()}\n${end.text()}`,
  );
}
