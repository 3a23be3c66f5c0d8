// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/core/tensor.h"

#include <gtest/gtest.h>
#include <vector>

#include "base/error.h"
#include "kernels/core/weight_view.h"

namespace vitrine::kernels {
namespace {

class TensorViews : public ::testing::Test {
protected:
    std::vector<float> memory_ = std::vector<float>(200);

    TensorView view(const Shape& shape) { return {memory_.data(), DType::F32, shape}; }
    std::int64_t placeOf(const TensorView& tensor) const { return tensor.as<const float>() - memory_.data(); }
};

TEST_F(TensorViews, StridesAreThoseOfContiguousMemoryUnlessGiven) {
    TensorView tensor = view(Shape{2, 3, 5});
    EXPECT_EQ(tensor.stride(0), 15);
    EXPECT_EQ(tensor.stride(1), 5);
    EXPECT_EQ(tensor.stride(2), 1);
    EXPECT_TRUE(tensor.contiguous());
    tensor.strides[0] = 20;
    EXPECT_EQ(tensor.stride0(), 20);
    EXPECT_FALSE(tensor.contiguous());
    tensor.shape = Shape{1, 3, 5};
    EXPECT_TRUE(tensor.contiguous()) << "a single row has no neighbour";
    EXPECT_EQ(view(Shape{}).stride0(), 0);
}

TEST_F(TensorViews, ASliceOfAnyDimensionViewsTheSameMemory) {
    const TensorView rows = sliceRows(view(Shape{4, 6}), 1, 3);
    EXPECT_EQ(placeOf(rows), 6);
    EXPECT_TRUE(rows.contiguous());
    const TensorView columns = slice(view(Shape{4, 6}), 1, 2, 5);
    EXPECT_EQ(placeOf(columns), 2);
    EXPECT_EQ(columns.shape, (Shape{4, 3}));
    EXPECT_EQ(columns.stride(0), 6);
    EXPECT_EQ(columns.stride(1), 1);
    EXPECT_EQ(placeOf(sliceRows(columns, 2, 3)), 14);
    EXPECT_THROW(slice(view(Shape{4, 6}), 1, 2, 7), base::Internal);
    EXPECT_THROW(slice(view(Shape{4, 6}), 2, 0, 1), base::Internal);
}

TEST_F(TensorViews, RowsThatLieApartMayBeSplitButNotJoined) {
    const TensorView columns = slice(view(Shape{4, 12}), 1, 0, 6);
    const TensorView heads = reshaped(columns, Shape{4, 2, 3});
    EXPECT_EQ(heads.stride(0), 12);
    EXPECT_EQ(heads.stride(1), 3);
    EXPECT_THROW(reshaped(columns, Shape{8, 3}), base::Internal);
    EXPECT_THROW(reshaped(columns, Shape{4, 5}), base::Internal);
    EXPECT_EQ(reshaped(view(Shape{4, 6}), Shape{8, 3}).stride(0), 3);
}

TEST_F(TensorViews, HeadsFirst) {
    const TensorView heads = headsFirst(view(Shape{7, 2, 4}));
    EXPECT_EQ(heads.shape, (Shape{1, 2, 7, 4}));
    EXPECT_EQ(heads.stride(1), 4);
    EXPECT_EQ(heads.stride(2), 8);
    EXPECT_EQ(heads.stride(3), 1);
}

TEST_F(TensorViews, ADenseWeightHasItsOwnShapeHoweverItIsStored) {
    const WeightView plain = denseWeight(view(Shape{3, 4, 6}));
    EXPECT_EQ(plain.experts(), 3);
    EXPECT_EQ(plain.outFeatures(), 4);
    EXPECT_EQ(plain.inFeatures(), 6);
    EXPECT_EQ(plain.bytes(), 3U * 4 * 6 * 4);
    const WeightView transposed = denseWeight(view(Shape{3, 4, 6}), true);
    EXPECT_EQ(transposed.outFeatures(), 6);
    EXPECT_EQ(transposed.inFeatures(), 4);
    EXPECT_TRUE(WeightView{}.empty());
}

} // namespace
} // namespace vitrine::kernels
