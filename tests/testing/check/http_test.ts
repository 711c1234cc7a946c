import assert from "node:assert/strict";
import http, { request } from "node:http";
import { test } from "node:test";
import { checkOperator } from "../../../dev/testing/check/check_operator.ts";

test("Requests by node:http and node:https are answered by the externals", async () => {
  const before = [http.request, request];
  const states = new Set<string>();
  const { findings } = await checkOperator({
    operator: new URL("./fixtures/http_caller.ts", import.meta.url),
    plans: 1,
    only: ["crash"],
    workload: [{
      apply: {
        apiVersion: "test.coracle.dev/v1",
        kind: "Caller",
        metadata: { name: "a", namespace: "default" },
        spec: { size: 1 },
      },
    }],
    externals: async (request) => {
      const { method, url, headers } = request;
      if (url === "http://none.test/") throw new TypeError("fetch failed");
      const given = [
        method,
        url,
        headers.get("x-list") ?? "",
        await request.text(),
      ];
      return new Response(given.join(" "), { status: 201 });
    },
    invariants: {
      eventually: {
        "The answers are kept": ({ list }) => {
          const [found] = list("ConfigMap").filter((one) =>
            one.metadata?.name === "a"
          );
          if (found) states.add(JSON.stringify({ ...found }["data" as never]));
        },
      },
    },
  });
  assert.deepEqual(findings.map(({ title }) => title), []);
  assert.deepEqual([...states].map((one) => JSON.parse(one)), [{
    named: "201 GET http://books.test/1?a=b  ",
    put: "201 PUT https://books.test:8443/2 a, b the body",
    refused: "ECONNREFUSED",
  }]);
  assert.deepEqual([http.request, request], before);
});
