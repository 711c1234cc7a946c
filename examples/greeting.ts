import { defineKind, Operator, patchStatus } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";

const Greeting = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Greeting",
  spec: z.object({ name: z.string().min(1), loud: z.boolean().default(false) }),
  status: z.object({ text: z.string() }).partial(),
});

const operator = new Operator();

operator.register(Greeting, {
  async reconcile(greeting, ctx) {
    const { name, loud } = greeting.spec;
    const text = loud ? `HELLO, ${name.toUpperCase()}!` : `Hello, ${name}.`;
    await ctx.apply(ConfigMap, {
      metadata: { name: greeting.metadata.name },
      data: { text },
    });
    return patchStatus({ text });
  },
}, { owns: [ConfigMap], install: true });

await operator.run();
