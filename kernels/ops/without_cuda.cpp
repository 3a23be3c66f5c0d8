// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The CUDA overloads of every op in a build without CUDA headers.

#include "kernels/ops/attention/block_counts.h"
#include "kernels/ops/attention/flex_attention.h"
#include "kernels/ops/comm/all_gather.h"
#include "kernels/ops/comm/all_reduce.h"
#include "kernels/ops/comm/all_to_all.h"
#include "kernels/ops/comm/broadcast.h"
#include "kernels/ops/comm/finish_block.h"
#include "kernels/ops/comm/send_receive.h"
#include "kernels/ops/experts/group_pairs.h"
#include "kernels/ops/experts/grouped_matmul.h"
#include "kernels/ops/experts/own_experts.h"
#include "kernels/ops/experts/pack_experts.h"
#include "kernels/ops/experts/router_shares.h"
#include "kernels/ops/fused/block_primitives.h"
#include "kernels/ops/fused/latent_blocks.h"
#include "kernels/ops/linear/matmul_gradients.h"
#include "kernels/ops/linear/pack_weight.h"
#include "kernels/ops/linear/weights.h"
#include "kernels/ops/loss/cross_entropy.h"
#include "kernels/ops/loss/log_probs.h"
#include "kernels/ops/loss/policy_loss.h"
#include "kernels/ops/optimizer/adamw.h"
#include "kernels/ops/optimizer/adamw_8bit.h"
#include "kernels/ops/optimizer/gradient_norm.h"
#include "kernels/ops/rowwise/dropout.h"
#include "kernels/ops/rowwise/elementwise.h"
#include "kernels/ops/rowwise/sum_rows.h"
#include "kernels/ops/sampling/greedy_parts.h"
#include "kernels/ops/sampling/sample.h"

namespace vitrine::kernels {

// A macro: overloads cannot be instantiated from a template without a call.
#define VITRINE_WITHOUT_CUDA(Op)                                                                                       \
    void execute(CudaContext&, const Op&) {                                                                            \
        throwNoCuda(Op::kName);                                                                                        \
    }

VITRINE_WITHOUT_CUDA(Attention)
VITRINE_WITHOUT_CUDA(Add)
VITRINE_WITHOUT_CUDA(SoftCap)
VITRINE_WITHOUT_CUDA(Cast)
VITRINE_WITHOUT_CUDA(ScaleRows)
VITRINE_WITHOUT_CUDA(SumRows)
VITRINE_WITHOUT_CUDA(Dropout)
VITRINE_WITHOUT_CUDA(SetZero)
VITRINE_WITHOUT_CUDA(Embedding)
VITRINE_WITHOUT_CUDA(EmbeddingGradient)
VITRINE_WITHOUT_CUDA(GatedActivation)
VITRINE_WITHOUT_CUDA(GatedActivationBackward)
VITRINE_WITHOUT_CUDA(KvWrite)
VITRINE_WITHOUT_CUDA(Matmul)
VITRINE_WITHOUT_CUDA(MatmulInputGradient)
VITRINE_WITHOUT_CUDA(MatmulWeightGradient)
VITRINE_WITHOUT_CUDA(RouterTopK)
VITRINE_WITHOUT_CUDA(RouterTopKBackward)
VITRINE_WITHOUT_CUDA(RouterShares)
VITRINE_WITHOUT_CUDA(PackExperts)
VITRINE_WITHOUT_CUDA(OwnExperts)
VITRINE_WITHOUT_CUDA(ExpertMatmul)
VITRINE_WITHOUT_CUDA(GroupPairs)
VITRINE_WITHOUT_CUDA(GatherPairs)
VITRINE_WITHOUT_CUDA(GroupedMatmul)
VITRINE_WITHOUT_CUDA(GroupedInputGradient)
VITRINE_WITHOUT_CUDA(GroupedWeightGradient)
VITRINE_WITHOUT_CUDA(GroupedBiasGradient)
VITRINE_WITHOUT_CUDA(GroupedDots)
VITRINE_WITHOUT_CUDA(MoeCombine)
VITRINE_WITHOUT_CUDA(RmsNorm)
VITRINE_WITHOUT_CUDA(RmsNormBackward)
VITRINE_WITHOUT_CUDA(Rope)
VITRINE_WITHOUT_CUDA(Sample)
VITRINE_WITHOUT_CUDA(BestOfPart)
VITRINE_WITHOUT_CUDA(BestOfParts)
VITRINE_WITHOUT_CUDA(AllReduce)
VITRINE_WITHOUT_CUDA(AllGather)
VITRINE_WITHOUT_CUDA(ReduceScatter)
VITRINE_WITHOUT_CUDA(AllToAll)
VITRINE_WITHOUT_CUDA(Broadcast)
VITRINE_WITHOUT_CUDA(Reduce)
VITRINE_WITHOUT_CUDA(Send)
VITRINE_WITHOUT_CUDA(Receive)
VITRINE_WITHOUT_CUDA(FinishBlock)
VITRINE_WITHOUT_CUDA(Dequantize)
VITRINE_WITHOUT_CUDA(PackWeights)
VITRINE_WITHOUT_CUDA(FillRandom)
VITRINE_WITHOUT_CUDA(BlockCounts)
VITRINE_WITHOUT_CUDA(FlexAttention)
VITRINE_WITHOUT_CUDA(FlexAttentionBackward)
VITRINE_WITHOUT_CUDA(TransposeCopy)
VITRINE_WITHOUT_CUDA(QkvProject)
VITRINE_WITHOUT_CUDA(OutProject)
VITRINE_WITHOUT_CUDA(DenseMlp)
VITRINE_WITHOUT_CUDA(Route)
VITRINE_WITHOUT_CUDA(ExpertMlp)
VITRINE_WITHOUT_CUDA(LmHead)
VITRINE_WITHOUT_CUDA(LatentProject)
VITRINE_WITHOUT_CUDA(LatentOut)
VITRINE_WITHOUT_CUDA(CrossEntropy)
VITRINE_WITHOUT_CUDA(SumLosses)
VITRINE_WITHOUT_CUDA(LogProbs)
VITRINE_WITHOUT_CUDA(LogProbsBackward)
VITRINE_WITHOUT_CUDA(PolicyLoss)
VITRINE_WITHOUT_CUDA(AdamW)
VITRINE_WITHOUT_CUDA(AdamW8Bit)
VITRINE_WITHOUT_CUDA(SquaredNorm)
VITRINE_WITHOUT_CUDA(ClipScale)

#undef VITRINE_WITHOUT_CUDA

} // namespace vitrine::kernels
