package bench;

import io.javaoperatorsdk.operator.api.reconciler.Cleaner;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.ControllerConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.DeleteControl;

/** An operator of Greetings with a finalizer. */
@ControllerConfiguration
public final class GreetingCleaner extends GreetingOperator implements Cleaner<Greeting> {
  @Override
  public DeleteControl cleanup(Greeting greeting, Context<Greeting> context) {
    return DeleteControl.defaultDelete();
  }
}
