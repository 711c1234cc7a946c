/**
 * Bug: the cleanup of a DNS record fails where the record is gone already, so that
 * the finalizer stays forever if the answer of its deletion was lost.
 */
import {
  defineKind,
  Operator,
  type OperatorOptions,
  setStatus,
} from "@coracle/operator";
import { z } from "zod";

export const write = "delete DnsRecord default/sample";

const DNS = "http://dns.test/records";

const Record = defineKind({
  group: "planted.coracle.dev",
  version: "v1",
  kind: "DnsRecord",
  spec: z.object({
    host: z.string().regex(/^[a-z]+\.test$/),
    address: z.enum(["10.0.0.1", "10.0.0.2"]),
  }),
  status: z.object({ host: z.string(), address: z.string() }).partial(),
});

async function send(method: string, id: string, body?: object): Promise<void> {
  const response = await fetch(`${DNS}/${id}`, {
    method,
    ...body && { body: JSON.stringify(body) },
  });
  if (!response.ok) throw new Error(`The DNS answers ${response.status}`);
}

export function operator(options: OperatorOptions = {}): Operator {
  const operator = new Operator(options);
  operator.register(Record, {
    async reconcile({ metadata: { uid = "" }, spec, status }) {
      const { host, address } = spec;
      if (status?.host !== host || status.address !== address) {
        await send("PUT", uid, { host, address });
      }
      return setStatus({ host, address });
    },
    async cleanup({ metadata: { uid = "" } }) {
      await send("DELETE", uid);
    },
  }, { install: true });
  return operator;
}
