import assert from "node:assert/strict";
import { patchResourceAndStatus } from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { watch } from "@coracle/operator/sources";
import { limitedClient } from "../support/limited_client.ts";
import { policyRules } from "../../dev/testing/rbac.ts";
import { operatorAccess } from "../../dev/testing/operator_access.ts";
import { startGadgets } from "../support/gadget_runs.ts";
import { Gadget, scenario } from "../support/operator_fixture.ts";

scenario(
  "The permissions of the manifest suffice for every feature",
  async (fixture) => {
    const { client, grant } = await limitedClient(fixture, []);
    const sources = [watch<Gadget, ConfigMap>(ConfigMap)];
    const planned = fixture.operator({ client });
    planned.register(Gadget, { reconcile() {}, cleanup() {} }, {
      sources,
      install: true,
    });
    await grant(policyRules(operatorAccess(planned, { namespace: "default" })));
    let cleaned = false;
    const { controller, runs } = await startGadgets(
      fixture,
      async (gadget, ctx) => {
        const { name } = gadget.metadata;
        await ctx.apply(ConfigMap, { metadata: { name } });
        await ctx.modify(ConfigMap, name, (map) => {
          map.data = { runs: String(runs.length) };
        });
        const isFirst = runs.length === 1;
        if (isFirst) {
          await ctx.patch(Gadget, name, { status: { count: 1 } }, {
            subresource: "status",
          });
        }
        ctx.events.normal("Seen", "It was seen");
        return patchResourceAndStatus(
          { metadata: { labels: { runs: String(runs.length) } } },
          { value: gadget.spec.value },
          { method: isFirst ? undefined : "replace" },
        );
      },
      {
        operator: { client },
        sources,
        install: true,
        retry: false,
        async cleanup(gadget, ctx) {
          await ctx.delete(ConfigMap, gadget.metadata.name);
          cleaned = true;
        },
      },
    );
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    await fixture.settle();
    controller.trigger("default/a");
    await fixture.until(() => runs.length === 2);
    await fixture.settle();
    await fixture.remove("a");
    await fixture.until(async () => await fixture.gadget("a") === undefined);
    assert.ok(cleaned);
    const trouble = fixture.log.filter(({ level }) =>
      level === "warn" || level === "error"
    );
    assert.deepEqual(
      trouble.map(({ message, fields }) => `${message}: ${fields["error"]}`),
      [],
    );
    await fixture.until(() =>
      fixture.requests.some(({ verb, resource }) =>
        verb === "patch" && resource === "events"
      )
    );
  },
);
