// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Constant tensors stacked, cut and turned: the expected elements are PyTorch's.
#include "tests/engine/language/language_testing.h"

namespace vitrine::engine {
namespace {

TEST(LanguageLayouts, ElementsArePyTorchs) {
    struct Case {
        std::string expression; ///< of a tensor
        std::string elements;
    };
    const Case cases[] = {
        {"torch.kron(torch.tensor([[1, 2]]), torch.tensor([[1], [3]]))", "[[1, 2], [3, 6]]"},
        {"torch.cat([c * 10 for c in torch.arange(5).chunk(3)][1:])", "[20, 30, 40]"},
        {"torch.tensor_split(torch.arange(10), 3)[1]", "[4, 5, 6]"},
        {"torch.cartesian_prod(torch.arange(2), torch.tensor([5, 6]))", "[[0, 5], [0, 6], [1, 5], [1, 6]]"},
        {"torch.rot90(torch.arange(6).view(2, 3))", "[[2, 5], [1, 4], [0, 3]]"},
        {"torch.rot90(torch.arange(6).view(2, 3), -1, [0, 1])", "[[3, 0], [4, 1], [5, 2]]"},
        {"torch.vstack([torch.arange(2), torch.ones(2, 2)])", "[[0, 1], [1, 1], [1, 1]]"},
        {"torch.column_stack([torch.arange(2), torch.ones(2, 1)])", "[[0, 1], [1, 1]]"},
        {"torch.hstack([torch.zeros(2, 1), torch.ones(2, 1)])", "[[0, 1], [0, 1]]"},
        {"torch.arange(12).unflatten(0, (2, -1)).movedim(0, -1)[1:3]", "[[1, 7], [2, 8]]"},
        {"torch.arange(12).view(3, 4).narrow(1, 1, 2).select(0, -1)", "[9, 10]"},
        {"torch.stack([torch.tensor([3, 1, 9, 2]).median(), torch.tensor([[1, 0], [2, 3]]).count_nonzero()])",
         "[2, 3]"},
        {"torch.zeros(2, 2).fill_diagonal_(3)", "[[3, 0], [0, 3]]"},
        {"torch.zeros(4).index_put_((torch.tensor([1, 3]),), torch.tensor([5.0, 6.0]))", "[0, 5, 0, 6]"},
        {"torch.meshgrid(torch.arange(2), torch.arange(3), indexing='xy')[0]", "[[0, 1], [0, 1], [0, 1]]"},
        {"torch.meshgrid(torch.arange(2), torch.arange(3), indexing='xy')[1]", "[[0, 0], [1, 1], [2, 2]]"},
        {"torch.arange(12).view(2, 2, 3).mT[1]", "[[6, 9], [7, 10], [8, 11]]"},
        {"(torch.softmax(torch.tensor([[0.0, 0.0], [1.0, 3.0]]), -1) * 1000).int()", "[[500, 500], [119, 880]]"},
        {"(torch.arange(5.0).std() * 1000).int()", "1581"},
        {"torch.arange(6.0).view(2, 3).var(dim=1, unbiased=False, keepdim=True).mul(3).round().int()", "[[2], [2]]"},
        {"(torch.nn.functional.normalize(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), dim=-1) * 10).int()",
         "[[6, 8], [0, 0]]"},
        {"(torch.logsumexp(torch.zeros(2, 4), 1) * 1000).int()", "[1386, 1386]"},
    };
    for (const Case& item : cases) {
        SCOPED_TRACE(item.expression);
        expectMaskOf("found = " + item.expression + "\nwanted = torch.tensor(" + item.elements +
                         ")\nassert found.shape == wanted.shape, str(found.shape)\nsame = (found == wanted).all()\n"
                         "def m(b, h, q, k): return same & (q >= k)\n",
                     "m", [](int, int, int q, int k) { return q >= k; });
    }
}

TEST(LanguageLayouts, BadArgumentsAreErrors) {
    for (const std::string expression :
         {"torch.arange(4).chunk(0)", "torch.arange(4).narrow(0, 3, 2)", "torch.arange(4).select(0, 4)",
          "torch.tensor(1).unflatten(0, (1, 1))", "torch.arange(4).unflatten(0, (1048576, 1048576, -1))",
          "torch.rot90(torch.arange(4))", "torch.kron(torch.arange(2), torch.ones(2, 2))", "torch.zeros(0).median()",
          "torch.cartesian_prod(torch.arange(2))", "torch.vstack([])", "torch.zeros(3).fill_diagonal_(1)",
          "torch.tensor(1).movedim(0, 3)", "torch.softmax(torch.zeros(0), 0)"}) {
        SCOPED_TRACE(expression);
        EXPECT_THROW(makeMod("t = " + expression + "\ndef m(b, h, q, k): return t[q] > k\n", "m", true), PyError);
    }
}

} // namespace
} // namespace vitrine::engine
