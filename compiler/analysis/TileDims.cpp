#include "analysis/TileDims.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace triton_metal {

static unsigned rankOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getRank() : 0;
}

static ArrayRef<int64_t> shapeOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getShape() : ArrayRef<int64_t>();
}

int64_t TileDim::getSize() const { return shapeOf(tile)[dim]; }

static void shrink(int64_t &size, const TileDim &place) { size = std::min(size, place.getSize()); }

TileDims::TileDims(tt::FuncOp kernel) {
  kernel.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Value result : op->getResults())
      number(result);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          number(argument);
  });
  classes.grow(all.size());
  kernel.getBody().walk([&](Operation *op) { visit(op); });
  classes.compress();
  pinned.resize(classes.getNumClasses());
  summed.resize(classes.getNumClasses());
  members.resize(classes.getNumClasses());
  for (unsigned index : pins)
    pinned.set(classes[index]);
  for (unsigned index : sums)
    summed.set(classes[index]);
  for (auto [index, place] : llvm::enumerate(all)) {
    unsigned id = classes[index];
    // The dimensions of a tile are different rows, even where they are of one size.
    if (!members[id].empty() && members[id].back().tile == place.tile)
      pinned.set(id);
    members[id].push_back(place);
  }
  sizes.assign(members.size(), std::numeric_limits<int64_t>::max());
  for (unsigned index : products)
    shrink(sizes[classes[index]], all[index]);
  for (auto [size, places] : llvm::zip_equal(sizes, members))
    if (size == std::numeric_limits<int64_t>::max())
      for (const TileDim &place : places)
        shrink(size, place);
}

bool TileDims::isDivisible(unsigned id, int64_t parts) const {
  return llvm::all_of(members[id],
                      [&](const TileDim &place) { return place.getSize() % parts == 0; });
}

void TileDims::number(Value value) {
  first[value] = all.size();
  for (unsigned dim = 0; dim < rankOf(value); ++dim)
    all.push_back({value, dim});
}

void TileDims::link(Value a, unsigned dimA, Value b, unsigned dimB) {
  classes.join(first.lookup(a) + dimA, first.lookup(b) + dimB);
}

void TileDims::linkAll(Value a, Value b) {
  if (rankOf(a) != rankOf(b))
    return;
  for (unsigned dim = 0; dim < rankOf(a); ++dim)
    link(a, dim, b, dim);
}

void TileDims::linkAll(ValueRange a, ValueRange b) {
  for (auto [one, other] : llvm::zip(a, b))
    linkAll(one, other);
}

void TileDims::addProduct(Value value) {
  for (unsigned dim = 0; dim < rankOf(value); ++dim)
    products.push_back(first.lookup(value) + dim);
}

void TileDims::pinAll(Value value) {
  for (unsigned dim = 0; dim < rankOf(value); ++dim)
    pin(value, dim);
}

/// Both sides have the elements in one order: a dimension that both have behind as many elements
/// stays what it is, and those between are mixed. Of these, the first ones run along each other: an
/// n-th of one has the elements of an n-th of the other.
void TileDims::visitReshape(tt::ReshapeOp reshape) {
  Value from = reshape.getSrc(), to = reshape.getResult();
  if (reshape.getAllowReorder()) {
    pinAll(from);
    return pinAll(to);
  }
  ArrayRef<int64_t> sizes = shapeOf(from), newSizes = shapeOf(to);
  unsigned i = 0, j = 0;
  while (i < sizes.size() || j < newSizes.size()) {
    bool areThere = i < sizes.size() && j < newSizes.size();
    if (areThere && sizes[i] == newSizes[j]) {
      link(from, i++, to, j++);
    } else if (i < sizes.size() && sizes[i] == 1) {
      pin(from, i++);
    } else if (j < newSizes.size() && newSizes[j] == 1) {
      pin(to, j++);
    } else {
      int64_t elements = sizes[i], newElements = newSizes[j];
      link(from, i++, to, j++);
      while (elements != newElements) {
        if (elements < newElements) {
          elements *= sizes[i];
          pin(from, i++);
        } else {
          newElements *= newSizes[j];
          pin(to, j++);
        }
      }
    }
  }
}

void TileDims::visit(Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](scf::ForOp loop) {
        linkAll(loop.getInitArgs(), loop.getRegionIterArgs());
        linkAll(loop.getRegionIterArgs(), loop.getYieldedValues());
        linkAll(loop.getRegionIterArgs(), loop.getResults());
      })
      .Case([&](scf::WhileOp loop) {
        linkAll(loop.getInits(), loop.getBeforeArguments());
        linkAll(loop.getBeforeArguments(), loop.getYieldedValues());
        linkAll(loop.getConditionOp().getArgs(), loop.getAfterArguments());
        linkAll(loop.getConditionOp().getArgs(), loop.getResults());
      })
      .Case([&](scf::IfOp branch) {
        if (!branch.getNumResults())
          return;
        linkAll(branch.getResults(), branch.thenYield().getOperands());
        linkAll(branch.getResults(), branch.elseYield().getOperands());
      })
      // What these give on is linked above and below.
      .Case<scf::YieldOp, scf::ConditionOp, tt::ReduceReturnOp, tt::ScanReturnOp, tt::ReturnOp>(
          [](Operation *) {})
      .Case<tt::MakeRangeOp, tt::SplatOp, ub::PoisonOp>([](Operation *) {})
      .Case([&](arith::ConstantOp constant) {
        auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
        if (!elements || !elements.isSplat())
          pinAll(constant);
      })
      .Case([&](tt::ExpandDimsOp expand) {
        for (unsigned dim = 0; dim < rankOf(expand.getSrc()); ++dim)
          link(expand.getSrc(), dim, expand.getResult(), dim + (dim >= expand.getAxis()));
      })
      .Case([&](tt::BroadcastOp broadcast) {
        for (auto [dim, from, to] :
             llvm::enumerate(shapeOf(broadcast.getSrc()), shapeOf(broadcast.getResult())))
          if (from == to)
            link(broadcast.getSrc(), dim, broadcast.getResult(), dim);
      })
      .Case([&](tt::TransOp trans) {
        for (auto [dim, from] : llvm::enumerate(trans.getOrder()))
          link(trans.getResult(), dim, trans.getSrc(), from);
      })
      .Case([&](tt::ReshapeOp reshape) { visitReshape(reshape); })
      .Case([&](tt::GatherOp gather) {
        Value source = gather.getSrc(), indices = gather.getIndices();
        linkAll(indices, gather.getResult());
        for (unsigned dim = 0; dim < rankOf(source); ++dim)
          if (dim != gather.getAxis())
            link(source, dim, indices, dim);
        pin(source, gather.getAxis());
      })
      .Case([&](tt::JoinOp join) {
        linkAll(join.getLhs(), join.getRhs());
        unsigned rank = rankOf(join.getLhs());
        for (unsigned dim = 0; dim < rank; ++dim)
          link(join.getLhs(), dim, join.getResult(), dim);
        pin(join.getResult(), rank);
      })
      .Case([&](tt::SplitOp split) {
        linkAll(split.getOutLHS(), split.getOutRHS());
        unsigned rank = rankOf(split.getOutLHS());
        for (unsigned dim = 0; dim < rank; ++dim)
          link(split.getOutLHS(), dim, split.getSrc(), dim);
        pin(split.getSrc(), rank);
      })
      .Case([&](tt::DotOp dot) {
        linkAll(dot.getC(), dot.getD());
        unsigned rank = rankOf(dot.getD()), row = rank - 2, column = rank - 1;
        for (unsigned dim = 0; dim < row; ++dim) {
          link(dot.getA(), dim, dot.getD(), dim);
          link(dot.getB(), dim, dot.getD(), dim);
        }
        link(dot.getA(), row, dot.getD(), row);
        link(dot.getB(), column, dot.getD(), column);
        link(dot.getA(), column, dot.getB(), row);
        sum(dot.getA(), column);
        addProduct(dot.getA());
        addProduct(dot.getB());
      })
      .Case<tt::ReduceOp, tt::ScanOp>([&](auto combine) {
        Value tile = combine.getSrcs().front();
        unsigned axis = combine.getAxis();
        for (Value other : combine.getSrcs())
          linkAll(tile, other);
        pin(tile, axis);
        for (Value result : combine.getResult())
          for (unsigned dim = 0; dim < rankOf(result); ++dim)
            link(result, dim, tile, dim + (rankOf(result) < rankOf(tile) && dim >= axis));
      })
      .Default([&](Operation *other) {
        bool isKnown = isa<tt::LoadOp, tt::StoreOp, tt::AtomicRMWOp>(other) ||
                       other->hasTrait<OpTrait::Elementwise>();
        SmallVector<Value> tiles;
        for (ValueRange values :
             {ValueRange(other->getOperands()), ValueRange(other->getResults())})
          for (Value value : values)
            if (rankOf(value))
              tiles.push_back(value);
        for (Value tile : tiles) {
          if (!isKnown || rankOf(tile) != rankOf(tiles.front()))
            pinAll(tile);
          else
            linkAll(tile, tiles.front());
        }
      });
}

} // namespace triton_metal
