import assert from "node:assert/strict";
import type { Kubectl } from "../../support/kubectl.ts";
import { kubectlTest } from "../../support/kubectl_test_case.ts";
import { until } from "../../support/until.ts";

/** A group of its own for each run: definitions belong to the whole cluster. */
function definition(group: string): string {
  return JSON.stringify({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `sailboats.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: {
        kind: "Sailboat",
        plural: "sailboats",
        singular: "sailboat",
        shortNames: ["sb"],
        categories: ["fleet"],
      },
      versions: [{
        name: "v1",
        served: true,
        storage: true,
        subresources: {
          status: {},
          scale: {
            specReplicasPath: ".spec.crew",
            statusReplicasPath: ".status.aboard",
          },
        },
        additionalPrinterColumns: [
          { name: "Crew", type: "integer", jsonPath: ".spec.crew" },
          {
            name: "Rig",
            type: "string",
            jsonPath: ".spec.rig",
            priority: 1,
          },
        ],
        schema: {
          openAPIV3Schema: {
            type: "object",
            description: "A boat with sails.",
            properties: {
              spec: {
                type: "object",
                required: ["crew"],
                properties: {
                  crew: {
                    type: "integer",
                    minimum: 1,
                    description: "How many sail it.",
                  },
                  rig: {
                    type: "string",
                    enum: ["sloop", "ketch"],
                    default: "sloop",
                  },
                },
                "x-kubernetes-validations": [{
                  rule: "self.rig != 'ketch' || self.crew > 1",
                  message: "a ketch needs a crew of two",
                }],
              },
              status: {
                type: "object",
                properties: {
                  aboard: { type: "integer" },
                  conditions: {
                    type: "array",
                    items: {
                      type: "object",
                      properties: {
                        type: { type: "string" },
                        status: { type: "string" },
                      },
                    },
                  },
                },
              },
            },
          },
        },
      }],
    },
  });
}

async function withBoats(
  kubectl: Kubectl,
  body: (boat: (spec: string) => string) => Promise<void>,
): Promise<void> {
  const group = `${kubectl.namespace}.example.com`;
  await kubectl.feed(definition(group), "create -f -");
  try {
    await kubectl.run(
      `wait crd/sailboats.${group} --for=condition=Established --timeout=10s`,
    );
    await body((spec) =>
      `apiVersion: ${group}/v1\nkind: Sailboat\nmetadata: { name: ariel }\nspec: ${spec}\n`
    );
  } finally {
    await kubectl.run(`delete crd sailboats.${group}`);
  }
}

kubectlTest(
  "kubectl works on a custom resource as on a built-in one",
  async (kubectl) => {
    await withBoats(kubectl, async (boat) => {
      assert.match(
        await kubectl.feed(boat("{ crew: 2 }"), "apply -f -"),
        /^sailboat\.\S+\/ariel created\n$/,
      );
      assert.match(await kubectl.run("get sb"), /^NAME +CREW\nariel +2\n$/);
      assert.match(
        await kubectl.run("get fleet -o wide"),
        /^NAME +CREW +RIG\n/,
      );
      assert.equal(
        await kubectl.run("get sb ariel -o jsonpath={.spec.rig}"),
        "sloop",
      );
      const described = await kubectl.run("describe sb ariel");
      assert.match(described, /^Kind: +Sailboat$/m);
      assert.match(described, /^Spec:\n {2}Crew: +2\n {2}Rig: +sloop$/m);
      assert.match(
        await kubectl.fails("patch sb ariel --type strategic -p", "{}"),
        /strategic-merge-patch\+json is not supported by .*, Kind=Sailboat/,
      );
      await kubectl.run("scale sb ariel --replicas=3");
      assert.equal(
        await kubectl.run("get sb ariel -o jsonpath={.spec.crew}"),
        "3",
      );
      assert.match(
        await kubectl.feed(boat("{ crew: 4 }"), "apply -f -"),
        /configured\n$/,
      );
      await kubectl.run("label sb ariel port=home");
      await kubectl.run(
        "patch sb ariel --type merge -p",
        '{"spec":{"rig":"ketch"}}',
      );
      const waiting = kubectl.run(
        "wait sb/ariel --for=condition=Afloat --timeout=20s",
      );
      await kubectl.run(
        "patch sb ariel --subresource=status --type merge -p",
        '{"status":{"conditions":[{"type":"Afloat","status":"True"}]}}',
      );
      assert.match(await waiting, /condition met\n$/);
      assert.match(await kubectl.run("delete sb ariel"), /"ariel" deleted/);
    });
  },
);

kubectlTest(
  "kubectl gets schema errors of a custom resource by field",
  async (kubectl) => {
    await withBoats(kubectl, async (boat) => {
      const refused = (spec: string) =>
        kubectl.feedFails(boat(spec), "create -f -");
      assert.match(
        await refused("{ crew: 0 }"),
        /spec\.crew: Invalid value: 0: spec\.crew in body should be greater than or equal to 1/,
      );
      assert.match(await refused("{}"), /spec\.crew: Required value/);
      assert.match(
        await refused("{ crew: 1, rig: raft }"),
        /spec\.rig: Unsupported value: "raft": supported values: "sloop", "ketch"/,
      );
      assert.match(
        await refused("{ crew: 1, rig: ketch }"),
        /a ketch needs a crew of two/,
      );
      assert.match(
        await refused("{ crew: 1, sail: 2 }"),
        /strict decoding error: unknown field "spec\.sail"/,
      );
    });
  },
);

kubectlTest(
  "kubectl explain and server-side apply support a custom resource",
  async (kubectl) => {
    await withBoats(kubectl, async (boat) => {
      const crew = await until(
        "the description is published",
        async () => {
          // What kubectl has cached would hide what is published later.
          const result = await kubectl.result(
            "explain sailboat.spec.crew --cache-dir=/dev/null",
          );
          return result.code === 0 && result.stdout;
        },
      );
      assert.match(crew, /^FIELD: crew <integer>$/m);
      assert.match(crew, /How many sail it\./);
      await kubectl.feed(
        boat("{ crew: 1 }"),
        "apply --server-side --field-manager=one -f -",
      );
      assert.match(
        await kubectl.feedFails(
          boat("{ crew: 2 }"),
          "apply --server-side --field-manager=two -f -",
        ),
        /conflict with "one": \.spec\.crew/,
      );
    });
  },
);
