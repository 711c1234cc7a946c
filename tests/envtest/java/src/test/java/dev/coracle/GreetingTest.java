package dev.coracle;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.api.model.apiextensions.v1.CustomResourceDefinitionBuilder;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;
import io.fabric8.kubernetes.api.model.Namespaced;
import io.javaoperatorsdk.operator.Operator;
import io.javaoperatorsdk.operator.api.config.informer.InformerEventSourceConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.Cleaner;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.ControllerConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.DeleteControl;
import io.javaoperatorsdk.operator.api.reconciler.EventSourceContext;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;
import io.javaoperatorsdk.operator.processing.event.source.EventSource;
import io.javaoperatorsdk.operator.processing.event.source.informer.InformerEventSource;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** An operator of the Java Operator SDK on the embedded API server. */
class GreetingTest {
  @RegisterExtension static final CoracleServer SERVER = new CoracleServer();

  static KubernetesClient client;
  static Operator operator;

  public record GreetingSpec(String name) {}

  public record GreetingStatus(String text) {}

  @Group("coracle.dev")
  @Version("v1")
  public static class Greeting extends CustomResource<GreetingSpec, GreetingStatus>
      implements Namespaced {}

  @ControllerConfiguration
  public static class GreetingReconciler implements Reconciler<Greeting>, Cleaner<Greeting> {
    @Override
    public List<EventSource<?, Greeting>> prepareEventSources(EventSourceContext<Greeting> context) {
      return List.of(new InformerEventSource<>(
          InformerEventSourceConfiguration.from(ConfigMap.class, Greeting.class)
              .withLabelSelector("app=greeting").build(),
          context));
    }

    @Override
    public UpdateControl<Greeting> reconcile(Greeting greeting, Context<Greeting> context) {
      var text = "Hello, " + greeting.getSpec().name();
      var map = new ConfigMapBuilder()
          .withMetadata(new ObjectMetaBuilder()
              .withName(greeting.getMetadata().getName())
              .withNamespace(greeting.getMetadata().getNamespace())
              .withLabels(Map.of("app", "greeting"))
              .build())
          .withData(Map.of("text", text))
          .build();
      map.addOwnerReference(greeting);
      context.getClient().resource(map).fieldManager("greeting").forceConflicts().serverSideApply();
      greeting.setStatus(new GreetingStatus(text));
      return UpdateControl.patchStatus(greeting);
    }

    @Override
    public DeleteControl cleanup(Greeting greeting, Context<Greeting> context) {
      return DeleteControl.defaultDelete();
    }
  }

  @BeforeAll
  static void start() {
    client = new KubernetesClientBuilder().withConfig(SERVER.config()).build();
    var definition = new CustomResourceDefinitionBuilder()
        .withNewMetadata().withName("greetings.coracle.dev").endMetadata()
        .withNewSpec().withGroup("coracle.dev").withScope("Namespaced")
        .withNewNames().withKind("Greeting").withPlural("greetings").withSingular("greeting").endNames()
        .addNewVersion().withName("v1").withServed(true).withStorage(true)
        .withNewSubresources().withNewStatus().endStatus().endSubresources()
        .withNewSchema().withNewOpenAPIV3Schema().withType("object")
        .addToProperties("spec", schema("name", 3L))
        .addToProperties("status", schema("text", null))
        .endOpenAPIV3Schema().endSchema()
        .endVersion().endSpec().build();
    client.resource(definition).create();
    client.resource(definition).waitUntilCondition(
        crd -> crd != null && crd.getStatus() != null && crd.getStatus().getConditions().stream()
            .anyMatch(condition -> condition.getType().equals("Established")
                && condition.getStatus().equals("True")),
        10, TimeUnit.SECONDS);
    operator = new Operator(overrider -> overrider.withKubernetesClient(client));
    operator.register(new GreetingReconciler());
    operator.start();
  }

  static io.fabric8.kubernetes.api.model.apiextensions.v1.JSONSchemaProps schema(
      String field, Long minLength) {
    return new io.fabric8.kubernetes.api.model.apiextensions.v1.JSONSchemaPropsBuilder()
        .withType("object")
        .addToProperties(field,
            new io.fabric8.kubernetes.api.model.apiextensions.v1.JSONSchemaPropsBuilder()
                .withType("string").withMinLength(minLength).build())
        .build();
  }

  @AfterAll
  static void stop() {
    operator.stop();
    client.close();
  }

  static Greeting greeting(String name, String whom) {
    var greeting = new Greeting();
    greeting.setMetadata(new ObjectMetaBuilder().withName(name).withNamespace("default").build());
    greeting.setSpec(new GreetingSpec(whom));
    return greeting;
  }

  @Test
  void reconcilesAndCleansUp() {
    var made = client.resource(greeting("one", "Ada")).create();
    client.resource(made).waitUntilCondition(
        now -> now != null && now.getStatus() != null && now.getStatus().text().equals("Hello, Ada"),
        10, TimeUnit.SECONDS);
    var maps = client.configMaps().inNamespace("default").withName("one");
    assertEquals("Hello, Ada", maps.get().getData().get("text"));

    // The operator restores what somebody else deletes.
    var uid = maps.get().getMetadata().getUid();
    maps.delete();
    maps.waitUntilCondition(map -> map != null && !map.getMetadata().getUid().equals(uid),
        10, TimeUnit.SECONDS);

    // The garbage collector of the server removes it with its owner.
    client.resource(made).delete();
    maps.waitUntilCondition(map -> map == null, 10, TimeUnit.SECONDS);
  }

  @Test
  void refusesWhatTheSchemaForbids() {
    var error = org.junit.jupiter.api.Assertions.assertThrows(KubernetesClientException.class,
        () -> client.resource(greeting("wrong", "X")).create());
    assertEquals(422, error.getCode());
    assertNotNull(error.getStatus().getDetails());
    assertTrue(error.getMessage().contains("spec.name in body should be at least 3 chars long"));
  }
}
