package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	api "coracle.dev/cronjob/api/v1"
)

var (
	ctx, cancel = context.WithCancel(context.Background())
	environment *envtest.Environment
	k8s         client.Client
	heard       recorder
)

type recorder struct {
	sync.Mutex
	texts []string
}

func (r *recorder) HandleWarningHeader(_ int, _, text string) {
	r.Lock()
	defer r.Unlock()
	r.texts = append(r.texts, text)
}

func TestWebhooks(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Webhook Suite")
}

var _ = BeforeSuite(func() {
	environment = &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "config", "crd")},
		ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{
			Paths: []string{filepath.Join("..", "config", "webhook")},
		},
	}
	config, err := environment.Start()
	Expect(err).NotTo(HaveOccurred())
	Expect(api.AddToScheme(scheme.Scheme)).To(Succeed())
	config = rest.CopyConfig(config)
	config.WarningHandler = &heard
	k8s, err = client.New(config, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	options := environment.WebhookInstallOptions
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme.Scheme,
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: options.LocalServingHost, Port: options.LocalServingPort, CertDir: options.LocalServingCertDir,
		}),
		Metrics: server.Options{BindAddress: "0"},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(Setup(manager)).To(Succeed())
	go func() {
		defer GinkgoRecover()
		Expect(manager.Start(ctx)).To(Succeed())
	}()
	address := fmt.Sprintf("%s:%d", options.LocalServingHost, options.LocalServingPort)
	Eventually(func() error {
		connection, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Second}, "tcp", address,
			&tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return err
		}
		return connection.Close()
	}, "10s", "20ms").Should(Succeed())
})

var _ = AfterSuite(func() {
	cancel()
	Expect(environment.Stop()).To(Succeed())
})

func newCronJob(name string) *api.CronJob {
	return &api.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: api.CronJobSpec{
			Schedule: "0 0 1 1 *",
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					Containers:    []corev1.Container{{Name: "work", Image: "work"}},
					RestartPolicy: corev1.RestartPolicyOnFailure,
				}},
			}},
		},
	}
}

var _ = Describe("CronJob webhooks", func() {
	It("set defaults", func() {
		job := newCronJob("defaulted")
		Expect(k8s.Create(ctx, job)).To(Succeed())
		Expect(*job.Spec.Suspend).To(BeFalse())
		Expect(*job.Spec.SuccessfulJobsHistoryLimit).To(BeEquivalentTo(3))
		Expect(*job.Spec.FailedJobsHistoryLimit).To(BeEquivalentTo(1))
	})

	It("refuse a wrong schedule and a long name", func() {
		job := newCronJob(strings.Repeat("a", 53))
		job.Spec.Schedule = "never"
		err := k8s.Create(ctx, job)
		Expect(apierrors.IsInvalid(err)).To(BeTrue())
		Expect(err.Error()).To(HavePrefix(`admission webhook "vcronjob-v1.kb.io" denied the request: CronJob.batch.tutorial.kubebuilder.io "aaa`))
		Expect(err.Error()).To(ContainSubstring("must be no more than 52 characters"))
		Expect(err.Error()).To(ContainSubstring("spec.schedule"))
		Expect(err.(apierrors.APIStatus).Status().Details.Causes).To(HaveLen(2))
	})

	It("refuse a wrong update, also one by server-side apply", func() {
		job := newCronJob("updated")
		Expect(k8s.Create(ctx, job)).To(Succeed())
		changed := job.DeepCopy()
		changed.Spec.Schedule = "later"
		Expect(apierrors.IsInvalid(k8s.Update(ctx, changed))).To(BeTrue())
		patch := client.RawPatch("application/apply-patch+yaml", []byte(
			`{"apiVersion":"batch.tutorial.kubebuilder.io/v1","kind":"CronJob","metadata":{"name":"updated"},"spec":{"schedule":"soon"}}`))
		err := k8s.Patch(ctx, job.DeepCopy(), patch, client.FieldOwner("tests"), client.ForceOwnership)
		Expect(apierrors.IsInvalid(err)).To(BeTrue())
	})

	It("warn, and refuse a deletion", func() {
		job := newCronJob("protected")
		job.Annotations = map[string]string{"protected": "true"}
		job.Spec.Schedule = "* * * * *"
		Expect(k8s.Create(ctx, job)).To(Succeed())
		heard.Lock()
		Expect(heard.texts).To(ContainElement("a run every minute is a lot"))
		heard.Unlock()
		err := k8s.Delete(ctx, job)
		Expect(apierrors.IsForbidden(err)).To(BeTrue())
		Expect(err.Error()).To(Equal(`admission webhook "vcronjob-v1.kb.io" denied the request: protected is protected`))
	})

	It("are called for a dry run, which stores nothing", func() {
		job := newCronJob("dry")
		Expect(k8s.Create(ctx, job, client.DryRunAll)).To(Succeed())
		Expect(*job.Spec.Suspend).To(BeFalse())
		Expect(apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(job), job))).To(BeTrue())
	})
})
