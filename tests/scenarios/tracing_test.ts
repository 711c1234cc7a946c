import assert from "node:assert/strict";
import {
  Client,
  type HttpRequest,
  patchStatus,
  type Transport,
} from "@coracle/operator/core";
import { ConfigMap, Secret } from "@coracle/operator/kinds";
import { startGadgets } from "../support/gadget_runs.ts";
import { type OperatorFixture, scenario } from "../support/operator_fixture.ts";
import { RecordedTracer } from "../support/recorded_tracer.ts";

/** Client that records the headers of its requests. */
function listening(
  fixture: OperatorFixture,
): { readonly client: Client; readonly sent: HttpRequest[] } {
  const sent: HttpRequest[] = [];
  const transport: Transport = {
    send(request) {
      sent.push(request);
      return fixture.transport.send(request);
    },
    close: () => Promise.resolve(),
  };
  return { client: new Client({ transport }, { clock: fixture.clock }), sent };
}

scenario(
  "A run is a span, its phases and requests are spans within it",
  async (fixture) => {
    const tracer = new RecordedTracer();
    const { client, sent } = listening(fixture);
    await startGadgets(fixture, async (gadget, ctx) => {
      const { name } = gadget.metadata;
      await ctx.apply(ConfigMap, { metadata: { name } });
      ctx.log.info("Working");
      return patchStatus({ value: gadget.spec.value });
    }, { operator: { tracer, client } });
    await fixture.create("a");
    await fixture.until(() => tracer.named("run gadget")[0]?.ended === true);
    const [run] = tracer.named("run gadget");
    assert.deepEqual(run?.attributes, {
      "coracle.controller": "gadget",
      "coracle.kind": "sample.coracle.dev/v1 Gadget",
      "coracle.object": "default/a",
      "coracle.cause": "added",
      "coracle.attempt": 0,
      "coracle.waited_ms": 0,
      "coracle.step": "reconcile",
    });
    assert.deepEqual(
      // Before them are the requests of the start.
      tracer.spans.slice(tracer.spans.indexOf(run!)).map((
        { name, parent, kind, ended },
      ) => [
        name,
        parent?.name,
        kind,
        ended,
      ]),
      [
        ["run gadget", undefined, 0, true],
        ["reconcile", "run gadget", 0, true],
        ["Kubernetes patch", "reconcile", 2, true],
        ["write", "run gadget", 0, true],
        ["Kubernetes patch", "write", 2, true],
      ],
    );
    const [apply] = tracer.named("Kubernetes patch");
    assert.deepEqual(apply?.attributes, {
      "http.request.method": "PATCH",
      "http.response.status_code": 201,
      "url.path": "/api/v1/namespaces/default/configmaps/a",
      "coracle.verb": "patch",
      "coracle.action": "apply ConfigMap default/a",
    });
    const request = sent.find(({ path }) => path.includes("/configmaps/a"));
    assert.equal(
      request?.headers?.["traceparent"],
      `00-${run?.trace}-${apply?.id}-01`,
    );
    const lines = fixture.log.filter(({ message }) =>
      message === "Working" || message === "Reconciled"
    );
    assert.equal(lines.length, 2);
    for (const { fields } of lines) {
      assert.equal(fields["trace_id"], run?.trace);
      assert.equal(fields["span_id"], run?.id);
    }
  },
);

scenario(
  "A failed run and a refused request are errors of their spans",
  async (fixture) => {
    const tracer = new RecordedTracer();
    await startGadgets(fixture, async (_gadget, ctx) => {
      await ctx.client.get(ConfigMap, { namespace: "default", name: "none" });
    }, { operator: { tracer }, retry: false, onError: () => undefined });
    await fixture.create("a");
    await fixture.until(() => tracer.named("run gadget")[0]?.ended === true);
    const [run] = tracer.named("run gadget");
    assert.equal(run?.status?.code, 2);
    assert.match(run?.exceptions[0] ?? "", /ApiError: Cannot get ConfigMap/);
    const request = tracer.named("Kubernetes get").at(-1);
    assert.equal(request?.status?.code, 2);
    assert.equal(request?.attributes["http.response.status_code"], 404);
    assert.equal(tracer.named("onError")[0]?.parent, run);
    assert.ok(tracer.spans.every(({ ended }) => ended));
  },
);

scenario(
  "Spans of Secrets that are written, and refused, show nothing of their data",
  async (fixture) => {
    const tracer = new RecordedTracer();
    const SECRET = "s3cret value!";
    const name = "credentials";
    const failures: string[] = [];
    const refused = async (write: Promise<unknown>) => {
      await assert.rejects(write, (error: Error) => {
        failures.push(error.message);
        return true;
      });
    };
    await startGadgets(fixture, async (_gadget, { apply, create, client }) => {
      await apply(Secret, { metadata: { name }, stringData: { key: SECRET } });
      await refused(
        create(Secret, { metadata: { name }, stringData: { key: SECRET } }),
      );
      const key = { namespace: "default", name };
      // No base64, a number instead of a text, a text instead of an object.
      for (const data of [{ key: SECRET }, { key: 987_654_321_098 }, SECRET]) {
        await refused(client.patch(Secret, key, { data } as never));
      }
      throw new Error("The run has failed");
    }, { operator: { tracer }, retry: false });
    await fixture.create("a");
    await fixture.until(() => tracer.named("run gadget")[0]?.ended === true);
    assert.equal(failures.length, 4);
    const spans = JSON.stringify(
      tracer.spans.map(({ parent: _, ...span }) => span),
    );
    assert.ok(spans.includes("/secrets/credentials"));
    for (const text of [SECRET, btoa(SECRET), "987654321098"]) {
      assert.ok(!spans.includes(text), text);
      assert.ok(!JSON.stringify(fixture.log).includes(text), text);
    }
  },
);

scenario(
  "A failing tracer loses spans, but no runs",
  async (fixture) => {
    const tracer = new RecordedTracer();
    const startActiveSpan: RecordedTracer["startActiveSpan"] = (...args) => {
      const [name] = args;
      if (name === "run gadget") throw new Error("The tracer is broken");
      return tracer.startActiveSpan(...args);
    };
    const { runs } = await startGadgets(
      fixture,
      () => patchStatus({ value: "x" }),
      {
        operator: { tracer: { startActiveSpan } },
        retry: { initial: "1s", jitter: 0 },
      },
    );
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "x"
    );
    assert.equal(runs.length, 1);
    assert.deepEqual(tracer.named("run gadget"), []);
    assert.ok(tracer.named("Kubernetes patch").length > 0);
  },
);

scenario(
  "Without a tracer, or with a disabled one, requests have no trace header",
  async (fixture) => {
    const { client, sent } = listening(fixture);
    const off = new RecordedTracer();
    const startActiveSpan: RecordedTracer["startActiveSpan"] = (
      name,
      options,
      work,
    ) =>
      off.startActiveSpan(name, options, (span) =>
        work({
          ...span,
          spanContext: () => ({
            traceId: "0".repeat(32),
            spanId: "0".repeat(16),
            traceFlags: 0,
          }),
        }));
    await startGadgets(fixture, (_gadget, ctx) => {
      ctx.log.info("Working");
      return patchStatus({ value: "x" });
    }, { operator: { client, tracer: { startActiveSpan } } });
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "x"
    );
    assert.ok(
      sent.every(({ headers }) => headers?.["traceparent"] === undefined),
    );
    const line = fixture.log.find(({ message }) => message === "Working");
    assert.equal(line?.fields["trace_id"], undefined);
  },
);
