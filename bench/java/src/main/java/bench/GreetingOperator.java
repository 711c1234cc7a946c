package bench;

import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.javaoperatorsdk.operator.Operator;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.ControllerConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;

/** An operator of Greetings by the Java Operator SDK. */
@ControllerConfiguration
public class GreetingOperator implements Reconciler<Greeting> {
  private static final int CONCURRENCY = 10;

  @Override
  public UpdateControl<Greeting> reconcile(Greeting greeting, Context<Greeting> context) {
    String text = "Hello, " + greeting.getSpec().name + ".";
    if (greeting.getStatus() != null && text.equals(greeting.getStatus().text)) {
      return UpdateControl.noUpdate();
    }
    // As the documentation says for server-side apply, only what this operator decides.
    Greeting greeted = new Greeting();
    greeted.setMetadata(
        new ObjectMetaBuilder()
            .withName(greeting.getMetadata().getName())
            .withNamespace(greeting.getMetadata().getNamespace())
            .build());
    greeted.setStatus(new Greeting.Status());
    greeted.getStatus().text = text;
    return UpdateControl.patchStatus(greeted);
  }

  /** Runs until the input ends; answers each line of it with the usage so far. */
  static void run(KubernetesClient client, Reconciler<Greeting> reconciler) throws Exception {
    Operator operator =
        new Operator(
            overrider ->
                overrider
                    .withKubernetesClient(client)
                    .withConcurrentReconciliationThreads(CONCURRENCY));
    operator.register(reconciler);
    operator.start();
    var input = new BufferedReader(new InputStreamReader(System.in));
    while (input.readLine() != null) {
      Main.tell(
          Map.of("cpu", Main.cpuMicroseconds(), "pid", ProcessHandle.current().pid()));
    }
  }
}
