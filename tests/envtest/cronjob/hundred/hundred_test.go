// Package hundred has a hundred small tests, to measure control planes with.
package hundred

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

var k8s *kubernetes.Clientset

func TestMain(m *testing.M) {
	environment := &envtest.Environment{}
	began := time.Now()
	config, err := environment.Start()
	if err != nil {
		panic(err)
	}
	started := time.Now()
	k8s = kubernetes.NewForConfigOrDie(config)
	code := m.Run()
	ended := time.Now()
	memory, anonymous, ticks := used()
	before := time.Now()
	if err := environment.Stop(); err != nil {
		panic(err)
	}
	if file := os.Getenv("MEASURED_FILE"); file != "" {
		text, _ := json.Marshal(map[string]int64{
			"startMs":      started.Sub(began).Milliseconds(),
			"testsMs":      ended.Sub(started).Milliseconds(),
			"stopMs":       time.Since(before).Milliseconds(),
			"residentKiB":  int64(memory),
			"anonymousKiB": int64(anonymous),
			"cpuMs":        int64(ticks) * 10,
		})
		_ = os.WriteFile(file, text, 0o600)
	}
	os.Exit(code)
}

// used is what the processes that this one has started have used: memory in KiB,
// the part of it that is not read from files, and CPU time in ticks of 10 ms.
func used() (memory, anonymous, ticks int) {
	own := os.Getpid()
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		text, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue
		}
		// The name, in parentheses, may have spaces.
		fields := strings.Fields(string(text[strings.LastIndex(string(text), ")")+1:]))
		var parent, user, system, pages int
		for at, value := range map[int]*int{1: &parent, 11: &user, 12: &system, 21: &pages} {
			_, _ = fmt.Sscan(fields[at], value)
		}
		if parent == own {
			memory += pages * os.Getpagesize() / 1024
			ticks += user + system
			status, _ := os.ReadFile("/proc/" + entry.Name() + "/status")
			if _, text, found := strings.Cut(string(status), "RssAnon:"); found {
				var size int
				_, _ = fmt.Sscan(text, &size)
				anonymous += size
			}
		}
	}
	return memory, anonymous, ticks
}

func TestHundred(t *testing.T) {
	for i := range 100 {
		t.Run(fmt.Sprint(i), small)
	}
}

// small creates, watches, changes and deletes objects in a namespace of its own.
func small(t *testing.T) {
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	space, err := k8s.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "small-"}}, metav1.CreateOptions{})
	must(err)
	maps := k8s.CoreV1().ConfigMaps(space.Name)
	events, err := maps.Watch(ctx, metav1.ListOptions{})
	must(err)
	defer events.Stop()
	made, err := maps.Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Data: map[string]string{"a": "1"}}, metav1.CreateOptions{})
	must(err)
	if event := <-events.ResultChan(); event.Type != watch.Added {
		t.Fatalf("first event is %s", event.Type)
	}
	changed := made.DeepCopy()
	changed.Data["a"] = "2"
	_, err = maps.Update(ctx, changed, metav1.UpdateOptions{})
	must(err)
	if _, err = maps.Update(ctx, changed, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Fatalf("second update: %v", err)
	}
	deployments := k8s.AppsV1().Deployments(space.Name)
	labels := map[string]string{"app": "web"}
	_, err = deployments.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
			},
		},
	}, metav1.CreateOptions{})
	must(err)
	_, err = deployments.Patch(ctx, "web", "application/merge-patch+json", []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{})
	must(err)
	list, err := deployments.List(ctx, metav1.ListOptions{LabelSelector: "app!=web"})
	must(err)
	if len(list.Items) != 1 || *list.Items[0].Spec.Replicas != 3 {
		t.Fatalf("%d deployments", len(list.Items))
	}
	must(deployments.Delete(ctx, "web", metav1.DeleteOptions{}))
	must(maps.Delete(ctx, "one", metav1.DeleteOptions{}))
	if _, err := maps.Get(ctx, "one", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("get after delete: %v", err)
	}
}
