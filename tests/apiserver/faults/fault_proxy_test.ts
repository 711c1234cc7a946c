import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import type {
  HttpRequest,
  HttpResponse,
  Transport,
} from "@coracle/operator/client";
import { FaultProxy } from "../../../dev/apiserver/faults/fault_proxy.ts";

test("FaultProxy ends a watch whose caller has left before it began", async () => {
  const begun = Promise.withResolvers<HttpResponse>();
  const asked = Promise.withResolvers<HttpRequest>();
  const server: Transport = {
    send(request) {
      asked.resolve(request);
      return begun.promise;
    },
    close: () => Promise.resolve(),
  };
  const proxy = new FaultProxy(server, new VirtualClock());
  const leaving = new AbortController();
  const sent = proxy.send({
    method: "GET",
    path: "/api/v1/pods?watch=true",
    headers: {},
    signal: leaving.signal,
  });
  const { signal } = await asked.promise;
  leaving.abort(new Error("left"));
  begun.resolve({
    status: 200,
    headers: {},
    body: {
      [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }),
    },
    cancel: () => Promise.resolve(),
  });
  await assert.rejects(sent, /left/);
  assert.equal(signal?.aborted, true);
  await proxy.close();
});

test("FaultProxy passes a watch on as a long response, and nothing else", async () => {
  const asked: (boolean | undefined)[] = [];
  const server: Transport = {
    send(request) {
      asked.push(request.mayPause);
      return Promise.reject(new Error("down"));
    },
    close: () => Promise.resolve(),
  };
  const proxy = new FaultProxy(server, new VirtualClock());
  for (const query of ["?watch=true", "", "?watch=1", "?limit=1"]) {
    const path = `/api/v1/pods${query}`;
    await proxy.send({ method: "GET", path, headers: {} }).catch(() => {});
  }
  assert.deepEqual(asked, [true, false, true, false]);
  await proxy.close();
});
