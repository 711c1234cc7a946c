package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// An object of any kind, whose type is in its apiVersion and kind.
type anyObject interface {
	client.Object
	SetGroupVersionKind(schema.GroupVersionKind)
}

// watchKinds runs a controller of controller-runtime for each of so many kinds
// of bench/support/many_kinds.ts, until each object has run once. The caches
// hold unstructured objects, or their metadata. The input is a kubeconfig.
func watchKinds(form string, kinds, objects int) error {
	log.SetLogger(logr.Discard())
	kubeconfig, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	start, cpu := time.Now(), cpuMicroseconds()
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
		// Otherwise each Get of an unstructured object goes to the server.
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var runs atomic.Int64
	done := make(chan error, 1)
	reader := manager.GetClient()
	for index := range kinds {
		kind := schema.GroupVersionKind{
			Group: "kinds.coracle.dev", Version: "v1", Kind: fmt.Sprintf("Kind%d", index),
		}
		object := func() anyObject {
			var object anyObject = &unstructured.Unstructured{}
			if form == "metadata" {
				object = &metav1.PartialObjectMetadata{}
			}
			object.SetGroupVersionKind(kind)
			return object
		}
		reconciler := func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
			if err := reader.Get(ctx, request.NamespacedName, object()); err != nil {
				return ctrl.Result{}, err
			}
			if runs.Add(1) == int64(kinds*objects) {
				done <- nil
			}
			return ctrl.Result{}, nil
		}
		err := ctrl.NewControllerManagedBy(manager).For(object()).Complete(reconcile.Func(reconciler))
		if err != nil {
			return err
		}
	}
	go func() { done <- manager.Start(ctx) }()
	if err := <-done; err != nil {
		return err
	}
	cpu, wall := cpuMicroseconds()-cpu, time.Since(start)
	if count := runs.Load(); count != int64(kinds*objects) {
		return fmt.Errorf("each object must run once: received %d runs", count)
	}
	debug.FreeOSMemory()
	rss, err := residentBytes()
	if err != nil {
		return err
	}
	sockets, err := openSockets()
	if err != nil {
		return err
	}
	return tell([]measure{
		{"MiB RSS", rss / (1 << 20)},
		{"sockets", sockets},
		{"s CPU to the last run", cpu / 1e6},
		{"s to the last run", wall.Seconds()},
		peakRSS(),
	})
}

// residentBytes is the memory that the process holds now.
func residentBytes() (float64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	var size, resident int
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return 0, err
	}
	return float64(resident * os.Getpagesize()), nil
}

// openSockets is the number of connections of the process.
func openSockets() (float64, error) {
	const folder = "/proc/self/fd/"
	entries, err := os.ReadDir(folder)
	if err != nil {
		return 0, err
	}
	count := 0
	for _, entry := range entries {
		// That of the folder itself is gone by now.
		target, _ := os.Readlink(folder + entry.Name())
		if strings.HasPrefix(target, "socket:") {
			count++
		}
	}
	return float64(count), nil
}
