package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/go-logr/logr"
)

// A Greeting is the primary of bench/reconcile_bench.ts.
type Greeting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Name string `json:"name"`
	} `json:"spec"`
	Status struct {
		Text string `json:"text,omitempty"`
	} `json:"status,omitempty"`
}

// DeepCopyObject makes a Greeting a runtime.Object.
func (g *Greeting) DeepCopyObject() runtime.Object {
	copied := *g
	g.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

// A GreetingList is what a list of Greetings is answered with.
type GreetingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Greeting `json:"items"`
}

// DeepCopyObject makes a GreetingList a runtime.Object.
func (l *GreetingList) DeepCopyObject() runtime.Object {
	copied := *l
	l.ListMeta.DeepCopyInto(&copied.ListMeta)
	copied.Items = nil
	for i := range l.Items {
		copied.Items = append(copied.Items, *l.Items[i].DeepCopyObject().(*Greeting))
	}
	return &copied
}

// concurrency is the number of runs at once of every operator.
const concurrency = 10

// finalizer is what a greeter with cleanup adds.
const finalizer = "greetings.bench.coracle.dev/finalizer"

type greeter struct {
	client.Client
	// cleanup says whether objects get a finalizer.
	cleanup bool
}

// Reconcile greets whom the spec names, in the status.
func (r *greeter) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var greeting Greeting
	if err := r.Get(ctx, request.NamespacedName, &greeting); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.cleanup {
		if !greeting.DeletionTimestamp.IsZero() {
			controllerutil.RemoveFinalizer(&greeting, finalizer)
			return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, &greeting))
		}
		if controllerutil.AddFinalizer(&greeting, finalizer) {
			if err := r.Update(ctx, &greeting); err != nil {
				return ctrl.Result{}, err
			}
		}
	}
	text := "Hello, " + greeting.Spec.Name + "."
	if greeting.Status.Text == text {
		return ctrl.Result{}, nil
	}
	greeting.Status.Text = text
	return ctrl.Result{}, r.Status().Update(ctx, &greeting)
}

// reconcileAll greets by controller-runtime until its input ends.
func reconcileAll(kubeconfig string, cleanup bool) error {
	log.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	scheme := greetingScheme()
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&Greeting{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(&greeter{manager.GetClient(), cleanup})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		answer(nil)
	}()
	return manager.Start(ctx)
}

// answer answers each line of the input with what the process has used, after
// it has written, where the line says so: see bench/support/operator_process.ts.
func answer(write func(round string) error) {
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		if round, writes := strings.CutPrefix(input.Text(), "write "); writes {
			if err := write(round); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		_ = tell(map[string]any{"cpu": cpuMicroseconds(), "pid": os.Getpid()})
	}
}

// greetingScheme is a scheme with the kind Greeting.
func greetingScheme() *runtime.Scheme {
	version := schema.GroupVersion{Group: "bench.coracle.dev", Version: "v1"}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(version, &Greeting{}, &GreetingList{})
	metav1.AddToGroupVersion(scheme, version)
	return scheme
}

// updateAll writes the status of every Greeting where its input says so, by the
// client of controller-runtime alone.
func updateAll(kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	writer, err := client.New(config, client.Options{Scheme: greetingScheme()})
	if err != nil {
		return err
	}
	ctx := context.Background()
	var greetings GreetingList
	if err := writer.List(ctx, &greetings); err != nil {
		return err
	}
	answer(func(round string) error {
		var next atomic.Int64
		group, ctx := errgroup.WithContext(ctx)
		for range concurrency {
			group.Go(func() error {
				for {
					index := int(next.Add(1)) - 1
					if index >= len(greetings.Items) {
						return nil
					}
					greeting := &greetings.Items[index]
					greeting.Status.Text = round + " " + greeting.Name
					if err := writer.Status().Update(ctx, greeting); err != nil {
						return err
					}
				}
			})
		}
		return group.Wait()
	})
	return nil
}
