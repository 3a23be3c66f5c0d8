// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/model/layer_forward.h"

#include <cmath>

#include "engine/checkpoint/model_config.h"
#include "engine/model/flat_attention.h"
#include "kernels/ops/attention/attention.h"
#include "kernels/ops/attention/kv_write.h"
#include "kernels/ops/comm/finish_block.h"
#include "kernels/ops/experts/own_experts.h"
#include "kernels/ops/fused/blocks.h"
#include "kernels/ops/fused/latent_blocks.h"

namespace vitrine::engine {

using base::MemoryCategory;
using kernels::DType;
using kernels::Shape;
using kernels::Tensor;
using kernels::TensorView;

namespace {

/// Tensors of the tokens' queries, keys and values.
void makeHeads(const OpRunner& runner, const LayerPass& pass, AttentionActivations& to) {
    const std::int64_t dim = pass.tokens.ropeDim(); // the whole head is rotated
    const Shape queries{pass.tokens.tokens(), pass.layer.q.weight.outFeatures() / dim, dim};
    const Shape keys{pass.tokens.tokens(), pass.layer.k.weight.outFeatures() / dim, dim};
    const DType keyType = pass.cache == nullptr ? runner.compute() : pass.cache->newKeyType;
    to.query = runner.activation("query", queries);
    to.key = runner.make(MemoryCategory::Activations, "key", keyType, keys);
    to.value = runner.make(MemoryCategory::Activations, "value", keyType, keys);
}

/// The same of latent attention: one key, which is the value too.
void makeLatentHeads(const OpRunner& runner, const LayerPass& pass, const kernels::LatentHeads& heads,
                     AttentionActivations& to) {
    const std::int64_t width = heads.latent() + pass.tokens.ropeDim();
    const DType keyType = pass.cache == nullptr ? runner.compute() : pass.cache->newKeyType;
    to.query = runner.activation("query", Shape{pass.tokens.tokens(), heads.heads, width});
    to.key = runner.make(MemoryCategory::Activations, "latent", keyType, Shape{pass.tokens.tokens(), 1, width});
}

void makeKept(const OpRunner& runner, const LayerPass& pass, const TensorView& x, AttentionActivations& keep) {
    const DecoderLayer& layer = pass.layer;
    if (!layer.attentionNorm.weight.empty()) {
        keep.normed = runner.activation("attention.normed", x.shape);
    }
    if (!layer.qNorm.weight.empty()) {
        keep.rawQuery = runner.activation("query.raw", keep.query.view().shape);
    }
    if (!layer.kNorm.weight.empty()) {
        keep.rawKey = runner.activation("key.raw", keep.key.view().shape);
    }
    if (!layer.attentionPostNorm.weight.empty()) {
        keep.branch = runner.activation("attention.branch", x.shape);
    }
    keep.lse = runner.make(MemoryCategory::Activations, "attention.lse", DType::F32,
                           Shape{keep.query.view().shape[1], pass.tokens.tokens()});
}

void project(const OpRunner& runner, const LayerPass& pass, const TensorView& x, const AttentionActivations& to) {
    const DecoderLayer& layer = pass.layer;
    for (const RopePart& part : pass.tokens.rope) {
        const auto rows = [&](const TensorView& tensor) {
            return tensor.empty() ? tensor : kernels::sliceRows(tensor, part.begin, part.end);
        };
        kernels::QkvProject op;
        op.x = rows(x);
        op.norm = layer.attentionNorm;
        op.q = layer.q;
        op.k = layer.k;
        op.v = layer.v;
        op.qNorm = layer.qNorm;
        op.kNorm = layer.kNorm;
        op.positions = rows(pass.tokens.positions);
        op.sequence = rows(pass.tokens.sequence);
        op.inverseFrequency = part.inverseFrequency;
        op.ropeScale = part.scale;
        op.writeCache = pass.cache != nullptr && pass.cache->writesFirst;
        if (pass.cache != nullptr) {
            op.cache = pass.cache->after;
        }
        op.outQ = rows(to.query.view());
        op.outK = rows(to.key.view());
        op.outV = rows(to.value.view());
        op.normed = rows(to.normed.view());
        op.rawQ = rows(to.rawQuery.view());
        op.rawK = rows(to.rawKey.view());
        runner.run(op);
    }
}

kernels::LatentHeads latentHeads(const LayerPass& pass) {
    const TensorView& up = pass.layer.latent.up;
    return {up, up.shape[0] / pass.config.latent.upDim(), pass.config.latent.nopeDim};
}

void projectLatent(const OpRunner& runner, const LayerPass& pass, const TensorView& x, const AttentionActivations& to) {
    const LatentWeights& latent = pass.layer.latent;
    for (const RopePart& part : pass.tokens.rope) {
        const auto rows = [&](const TensorView& tensor) { return kernels::sliceRows(tensor, part.begin, part.end); };
        kernels::LatentProject op;
        op.x = rows(x);
        op.norm = pass.layer.attentionNorm;
        op.queryDown = latent.queryDown;
        op.queryNorm = latent.queryNorm;
        op.query = pass.layer.q;
        op.keyDown = latent.keyDown;
        op.keyNorm = latent.keyNorm;
        op.heads = latentHeads(pass);
        op.positions = rows(pass.tokens.positions);
        op.sequence = rows(pass.tokens.sequence);
        op.inverseFrequency = part.inverseFrequency;
        op.ropeScale = part.scale;
        op.interleaved = pass.config.latent.interleaved;
        op.writeCache = pass.cache != nullptr && pass.cache->writesFirst;
        if (pass.cache != nullptr) {
            op.cache = pass.cache->after;
        }
        op.outQ = rows(to.query.view());
        op.outK = rows(to.key.view());
        runner.run(op);
    }
}

/// A cache that holds nothing yet: attention then reads the step's own keys and values.
kernels::KvView emptyCache(const LayerTokens& tokens, const TensorView& keys, const TensorView& values) {
    constexpr std::int64_t kPageTokens = 64; // of pages that nobody reads
    const Shape page{1, kPageTokens, keys.shape[1], keys.shape[2]};
    kernels::KvView view;
    view.keys = TensorView{keys.data, keys.dtype, page, {}};
    view.values = TensorView{values.data, values.dtype, page, {}};
    view.blockTable = kernels::reshaped(tokens.zeros, Shape{tokens.zeros.shape[0], 1});
    view.first = tokens.zeros;
    view.lengths = tokens.zeros;
    view.totalTokens = 1; // 0 would stand for "not known"
    view.ring = true;
    return view;
}

void attend(const OpRunner& runner, const LayerPass& pass, const AttentionActivations& heads) {
    if (pass.flat != nullptr) {
        runner.run(flexAttention(pass, *pass.flat, heads));
        return;
    }
    const TensorView keys = heads.key.view();
    const TensorView values = heads.value.empty() ? keys : heads.value.view();
    kernels::Attention op;
    op.q = heads.query.view();
    op.offsets = pass.tokens.offsets;
    op.positions = pass.tokens.positions;
    op.cache = pass.cache != nullptr ? pass.cache->before : emptyCache(pass.tokens, keys, values);
    if (pass.cache == nullptr || pass.cache->readsNew) {
        op.newK = keys;
        op.newV = values;
    }
    op.sinks = pass.layer.sinks;
    op.score = pass.layer.attentionScore;
    op.mask = pass.layer.attentionMask;
    op.scale = static_cast<float>(pass.config.attentionScale);
    op.out = heads.out.view();
    op.lse = heads.lse.view();
    runner.run(op);
    if (pass.cache != nullptr && !pass.cache->writesFirst) {
        kernels::KvWrite write;
        write.k = keys;
        write.v = values;
        write.sequence = pass.tokens.sequence;
        write.positions = pass.tokens.positions;
        write.cache = pass.cache->after;
        runner.execute(write);
    }
}

/// Ends a block of which each rank has a part: `makePart(out)` runs it as far as its own sum.
void finishParts(const OpRunner& runner, std::string_view name, const kernels::NormWeights& postNorm,
                 const TensorView& x, const TensorView& out, const std::function<void(const TensorView&)>& makePart) {
    const Tensor part = runner.activation(name, x.shape);
    makePart(part.view());
    kernels::FinishBlock op;
    op.partial = part.view();
    op.postNorm = postNorm;
    op.residual = x;
    op.out = out;
    op.communicator = runner.ranks();
    runner.run(op);
}

void denseMlp(const OpRunner& runner, const ModelConfig& config, const DecoderLayer& layer, const TensorView& x,
              const TensorView& out, MlpActivations* keep) {
    kernels::DenseMlp op;
    op.x = x;
    op.norm = layer.mlpNorm;
    op.postNorm = layer.mlpPostNorm;
    op.gate = layer.gate;
    op.up = layer.up;
    op.down = layer.down;
    op.activation = config.activation;
    op.out = out;
    if (keep != nullptr) {
        if (!layer.mlpNorm.weight.empty()) {
            keep->normed = runner.activation("mlp.normed", x.shape);
            op.normed = keep->normed.view();
        }
        keep->gateUp = runner.activation("mlp.gate_up", Shape{x.shape[0], 2 * layer.gate.weight.outFeatures()});
        op.gateUp = keep->gateUp.view();
        if (!layer.mlpPostNorm.weight.empty()) {
            keep->branch = runner.activation("mlp.branch", x.shape);
            op.branch = keep->branch.view();
        }
    }
    if (runner.ranks() == nullptr) {
        runner.run(op);
        return;
    }
    op.postNorm = {};
    op.partial = true;
    finishParts(runner, "mlp.part", layer.mlpPostNorm, x, out, [&](const TensorView& part) {
        op.out = part;
        runner.run(op);
    });
}

void makeExpertRows(const OpRunner& runner, const DecoderLayer& layer, std::int64_t hidden, MlpActivations& keep) {
    const std::int64_t pairs = keep.ids.view().shape.count();
    const auto indices = [&](std::string_view name, std::int64_t count) {
        return runner.make(MemoryCategory::Activations, name, DType::I32, Shape{count});
    };
    keep.starts = indices("expert_starts", layer.gateUp.weight.experts() + 1);
    keep.pairs = indices("expert_pairs", pairs);
    keep.places = indices("expert_places", pairs);
    keep.rows = runner.activation("expert_rows", Shape{pairs, hidden});
    keep.gateUp = runner.activation("expert_gate_up", Shape{pairs, layer.gateUp.weight.outFeatures()});
}

void route(const OpRunner& runner, const ModelConfig& config, const DecoderLayer& layer, const TensorView& x,
           const MlpActivations& to, const RouterReplay& replay) {
    kernels::Route op;
    op.x = x;
    op.norm = layer.mlpNorm;
    op.router = layer.router;
    op.order = config.routerOrder;
    op.normalize = config.routerNormalize;
    op.groups = {layer.routerCorrection, config.routerGroups, config.routerKeptGroups,
                 static_cast<float>(config.routerScale)};
    op.normed = to.normed.view();
    op.ids = to.ids.view();
    op.weights = to.weights.view();
    op.logits = to.routerLogits.view();
    op.given = replay.given;
    op.differing = replay.differing;
    runner.run(op);
}

/// Of a plan whose experts are divided among devices: the time in which rows go to the devices of their experts, each
/// at most once to each, and their results come back.
void exchangeRows(const OpRunner& runner, const TensorView& rows, std::int64_t expertsPerToken) {
    const kernels::DeviceLinks& links = runner.context().traits().links;
    if (links.ranks <= 1 || !runner.context().can().virtualTime) {
        return;
    }
    const double missed = std::pow(1 - 1.0 / links.ranks, static_cast<double>(expertsPerToken));
    const double sent = static_cast<double>(rows.bytes()) * links.ranks * (1 - missed);
    runner.context().passTime(2 * links.exchangeSeconds(sent));
}

/// Adds the experts that every token passes; `normed` is what the others have read.
void sharedExperts(const OpRunner& runner, const ModelConfig& config, const DecoderLayer& layer,
                   const TensorView& normed, const TensorView& out) {
    kernels::DenseMlp op;
    op.x = normed;
    op.gate = layer.sharedGate;
    op.up = layer.sharedUp;
    op.down = layer.sharedDown;
    op.activation = config.activation;
    op.residual = op.out = out;
    runner.run(op);
}

void experts(const OpRunner& runner, const ModelConfig& config, const DecoderLayer& layer, const TensorView& x,
             const TensorView& out, MlpActivations* keep, const RouterObserver* observer, const RouterReplay& replay) {
    MlpActivations own;
    MlpActivations& to = keep != nullptr ? *keep : own;
    const std::int64_t tokens = x.shape[0];
    const Shape choice{tokens, config.expertsPerToken};
    to.normed = runner.activation("normed", x.shape);
    to.ids = runner.make(MemoryCategory::Activations, "expert_ids", DType::I32, choice);
    to.weights = runner.make(MemoryCategory::Activations, "expert_weights", DType::F32, choice);
    if (keep != nullptr || (observer != nullptr && observer->wantsLogits)) {
        to.routerLogits = runner.make(MemoryCategory::Activations, "router_logits", DType::F32,
                                      Shape{tokens, layer.router.weight.outFeatures()});
    }
    route(runner, config, layer, x, to, replay);
    if (observer != nullptr) {
        observer->chosen(
            {to.routerLogits.view(), to.ids.view(), to.weights.view(), config.routerOrder, config.routerNormalize});
        if (keep == nullptr) {
            to.routerLogits.reset();
        }
    }
    exchangeRows(runner, to.normed.view(), config.expertsPerToken);
    kernels::ExpertMlp op;
    op.x = to.normed.view();
    op.ids = to.ids.view();
    op.weights = to.weights.view();
    op.gateUp = layer.gateUp;
    op.down = layer.down;
    op.activation = config.activation;
    op.layout = config.gateLayout;
    op.alpha = static_cast<float>(config.swigluAlpha);
    op.limit = static_cast<float>(config.swigluLimit);
    op.residual = x;
    op.out = out;
    op.byExpert = runner.context().traits().features.exactRows;
    if (keep != nullptr) {
        makeExpertRows(runner, layer, x.shape[1], to);
        op.kept = {to.starts.view(), to.pairs.view(), to.places.view(), to.rows.view(), to.gateUp.view()};
    }
    const auto run = [&](const TensorView& target) {
        op.out = target;
        runner.run(op);
        if (!layer.sharedGate.weight.empty()) {
            sharedExperts(runner, config, layer, to.normed.view(), target);
        }
    };
    if (runner.ranks() == nullptr) {
        run(out);
        return;
    }
    Tensor ownIds;
    op.residual = {};
    if (layer.gateUp.weight.experts() < config.experts) {
        ownIds = runner.make(MemoryCategory::Activations, "expert_ids.own", DType::I32, choice);
        runner.run(kernels::OwnExperts{to.ids.view(), ownIds.view(), layer.firstExpert, layer.gateUp.weight.experts()});
        op.ids = ownIds.view();
        op.allExperts = config.experts;
    }
    finishParts(runner, "experts.part", {}, x, out, run);
}

void latentForward(const OpRunner& runner, const LayerPass& pass, const TensorView& x, const TensorView& out) {
    AttentionActivations to;
    const kernels::LatentHeads heads = latentHeads(pass);
    makeLatentHeads(runner, pass, heads, to);
    projectLatent(runner, pass, x, to);
    to.out = runner.activation("attention", to.query.view().shape);
    attend(runner, pass, to);
    to.query.reset();
    to.key.reset();
    kernels::LatentOut op;
    op.x = to.out.view();
    op.heads = heads;
    op.o = pass.layer.o;
    if (runner.ranks() == nullptr) {
        op.residual = x;
        op.out = out;
        runner.run(op);
        return;
    }
    finishParts(runner, "attention.part", {}, x, out, [&](const TensorView& part) {
        op.out = part;
        runner.run(op);
    });
}

} // namespace

void attentionForward(const OpRunner& runner, const LayerPass& pass, const TensorView& x, const TensorView& out,
                      AttentionActivations* keep) {
    if (!pass.layer.latent.empty()) {
        latentForward(runner, pass, x, out);
        return;
    }
    AttentionActivations own;
    AttentionActivations& to = keep != nullptr ? *keep : own;
    makeHeads(runner, pass, to);
    if (keep != nullptr) {
        makeKept(runner, pass, x, to);
    }
    project(runner, pass, x, to);
    to.out = runner.activation("attention", to.query.view().shape);
    attend(runner, pass, to);
    if (keep == nullptr) {
        to.query.reset();
        to.key.reset();
        to.value.reset();
    }
    kernels::OutProject op;
    op.x = kernels::reshaped(to.out.view(), Shape{x.shape[0], pass.layer.q.weight.outFeatures()});
    op.o = pass.layer.o;
    if (runner.ranks() == nullptr) {
        op.postNorm = pass.layer.attentionPostNorm;
        op.residual = x;
        op.out = out;
        op.branch = to.branch.view();
        runner.run(op);
        return;
    }
    finishParts(runner, "attention.part", pass.layer.attentionPostNorm, x, out, [&](const TensorView& part) {
        op.out = part;
        runner.run(op);
    });
}

void mlpForward(const OpRunner& runner, const ModelConfig& config, const DecoderLayer& layer, const TensorView& x,
                const TensorView& out, MlpActivations* keep, const RouterObserver* observer,
                const RouterReplay& replay) {
    if (layer.config.moe) {
        experts(runner, config, layer, x, out, keep, observer, replay);
    } else {
        denseMlp(runner, config, layer, x, out, keep);
    }
}

} // namespace vitrine::engine
