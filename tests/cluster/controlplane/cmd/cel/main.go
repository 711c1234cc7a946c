// Command cel answers CEL expressions as kube-apiserver does: each line of its
// input is one question as JSON, each line of its output the answer.
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/version"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

type question struct {
	// Mode is "expression", "rule" or "policy".
	Mode       string
	Expression string
	// Rule and the schema of its node, with the values that it validates.
	Rule   *apiextensionsv1.ValidationRule
	Schema *apiextensionsv1.JSONSchemaProps
	Root   bool
	Value  json.RawMessage
	Old    json.RawMessage
	// Mutation adds the types of mutations to those of policies.
	Mutation bool
	// Variables of a policy.
	Variables map[string]json.RawMessage
}

type answer struct {
	Error string `json:"error,omitempty"`
	Type  string `json:"type,omitempty"`
	// Max is the estimated cost, Cost the one of the evaluation.
	Max    uint64   `json:"max,omitempty"`
	Cost   uint64   `json:"cost,omitempty"`
	Value  string   `json:"value,omitempty"`
	Failed string   `json:"failed,omitempty"`
	Causes []string `json:"causes,omitempty"`
}

var base = environment.MustBaseEnvSet(version.MajorMinor(1, 36))

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 1<<26)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for lines.Scan() {
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			encoder.Encode(answer{Error: "question: " + err.Error()})
			continue
		}
		encoder.Encode(ask(q))
	}
}

func ask(q question) (result answer) {
	defer func() {
		if problem := recover(); problem != nil {
			result.Failed = fmt.Sprintf("panic: %v", problem)
		}
	}()
	switch q.Mode {
	case "rule":
		return askRule(q)
	case "policy":
		return askPolicy(q)
	default:
		return askExpression(q)
	}
}

func askExpression(q question) answer {
	env := base.NewExpressionsEnv()
	ast, issues := env.Compile(q.Expression)
	if issues != nil {
		return answer{Error: issues.String()}
	}
	result := answer{Type: ast.OutputType().String()}
	if estimate, err := env.EstimateCost(ast, &library.CostEstimator{SizeEstimator: noSizes{}}); err == nil {
		result.Max = estimate.Max
	}
	program, err := env.Program(ast)
	if err != nil {
		return answer{Error: "program: " + err.Error()}
	}
	evaluate(&result, program, map[string]any{})
	return result
}

type noSizes struct{}

func (noSizes) EstimateSize(checker.AstNode) *checker.SizeEstimate { return nil }
func (noSizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

func evaluate(result *answer, program celgo.Program, variables map[string]any) {
	value, details, err := program.Eval(variables)
	if details != nil {
		if cost := details.ActualCost(); cost != nil {
			result.Cost = *cost
		}
	}
	if err != nil {
		result.Failed = err.Error()
		return
	}
	result.Value = text(value)
}

func askRule(q question) answer {
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(q.Schema, internal, nil); err != nil {
		return answer{Error: "schema: " + err.Error()}
	}
	structural, err := schema.NewStructural(internal)
	if err != nil {
		return answer{Error: "schema: " + err.Error()}
	}
	if q.Rule != nil {
		structural.XValidations = apiextensionsv1.ValidationRules{*q.Rule}
	}
	declared := model.SchemaDeclType(structural, q.Root)
	compiled, err := schemacel.Compile(structural, declared, celconfig.PerCallLimit, base, schemacel.NewExpressionsEnvLoader())
	if err != nil {
		return answer{Error: err.Error()}
	}
	result := answer{}
	for _, rule := range compiled {
		if rule.Error != nil {
			result.Error = rule.Error.Detail
		}
		if rule.MessageExpressionError != nil {
			result.Error += rule.MessageExpressionError.Detail
		}
		result.Max = rule.MaxCost
	}
	if q.Value == nil || result.Error != "" {
		return result
	}
	var value, old any
	if err := utiljson.Unmarshal(q.Value, &value); err != nil {
		return answer{Error: "value: " + err.Error()}
	}
	if q.Old != nil {
		if err := utiljson.Unmarshal(q.Old, &old); err != nil {
			return answer{Error: "old: " + err.Error()}
		}
	}
	validator := schemacel.NewValidator(structural, q.Root, celconfig.PerCallLimit)
	if validator == nil {
		return result
	}
	causes, left := validator.Validate(context.Background(), nil, structural, value, old, celconfig.RuntimeCELCostBudget)
	if left >= 0 {
		result.Cost = uint64(celconfig.RuntimeCELCostBudget - left)
	}
	for _, cause := range causes {
		result.Causes = append(result.Causes, cause.Error())
	}
	return result
}

type accessor struct{ expression string }

func (a accessor) GetExpression() string      { return a.expression }
func (a accessor) ReturnTypes() []*celgo.Type { return []*celgo.Type{celgo.AnyType} }

func askPolicy(q question) answer {
	compiler := admissioncel.NewCompiler(base)
	compiled := compiler.CompileCELExpression(accessor{q.Expression}, admissioncel.OptionalVariableDeclarations{
		HasParams: true, HasAuthorizer: true, HasPatchTypes: q.Mutation,
	}, environment.NewExpressions)
	if compiled.Error != nil {
		return answer{Error: strings.TrimPrefix(compiled.Error.Detail, "compilation failed: ")}
	}
	result := answer{Type: compiled.OutputType.String()}
	if q.Variables == nil {
		return result
	}
	variables := map[string]any{}
	for name, raw := range q.Variables {
		var value any
		if err := utiljson.Unmarshal(raw, &value); err != nil {
			return answer{Error: "variable: " + err.Error()}
		}
		variables[name] = value
	}
	evaluate(&result, compiled.Program, variables)
	return result
}

// text is a value in one notation, the same as that of the comparison.
func text(value ref.Val) string {
	switch v := value.(type) {
	case types.Null:
		return "null"
	case types.Bool:
		return strconv.FormatBool(bool(v))
	case types.Int:
		return strconv.FormatInt(int64(v), 10)
	case types.Uint:
		return strconv.FormatUint(uint64(v), 10) + "u"
	case types.Double:
		if float64(v) == 0 && math.Signbit(float64(v)) {
			return "double(-0)"
		}
		return "double(" + strconv.FormatFloat(float64(v), 'e', -1, 64) + ")"
	case types.String:
		return quote(string(v))
	case types.Bytes:
		return "bytes(" + hex.EncodeToString(v) + ")"
	case types.Timestamp:
		return fmt.Sprintf("timestamp(%d.%09d)", v.Unix(), v.Nanosecond())
	case types.Duration:
		return fmt.Sprintf("duration(%d)", v.Duration.Nanoseconds())
	case *types.Type:
		return "type(" + v.TypeName() + ")"
	case *types.Optional:
		if !v.HasValue() {
			return "none"
		}
		return "some(" + text(v.GetValue()) + ")"
	case traits.Lister:
		var items []string
		for it := v.Iterator(); it.HasNext() == types.True; {
			items = append(items, text(it.Next()))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case traits.Mapper:
		var entries []string
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			entries = append(entries, text(key)+": "+text(v.Get(key)))
		}
		sort.Strings(entries)
		return "{" + strings.Join(entries, ", ") + "}"
	}
	return value.Type().TypeName()
}

func quote(text string) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.Encode(text)
	return strings.TrimSpace(out.String())
}
